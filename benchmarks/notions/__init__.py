"""Every notion of `GroupRates` against the methods of other packages: values, accuracy on new rows, and seconds."""
