"""Reading native logs: files of any bytes to records of clean values; what was not clean is a finding."""
