"""Writer of compressed profiles of the Firefox Profiler, *.gecko.json.gz.

The Firefox Profiler opens both, and full tables are a third as large.
This file owns the compression only.
"""

import zlib

from profile_sampling._formats import gecko

# zlib's code for a gzip frame, without a time in it.
_GZIP_WBITS = 31


def encode(tables):
    """Return a file for the Firefox Profiler, as bytes."""
    return zlib.compress(gecko.encode(tables), wbits=_GZIP_WBITS)
