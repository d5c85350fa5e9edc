from .dask_table import dask_table as dask_table
from .files import array_table as array_table
from .files import parquet_table as parquet_table
from .table import Parts as Parts
from .table import Table as Table
from .torch_table import torch_table as torch_table
