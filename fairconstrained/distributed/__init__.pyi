from .errors import ProcessLost as ProcessLost
from .processes import fit as fit
