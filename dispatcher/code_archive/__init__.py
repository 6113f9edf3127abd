"""A code folder as one archive that is the same wherever and whenever it is made.

``scan_code(folder)`` lists what belongs to it, ``pack_code`` writes the archive and returns the
digest under which machines keep it: the same code is sent to a machine once.
"""

from dispatcher.code_archive.listing import Listing, TooMuchCode, scan_code
from dispatcher.code_archive.packing import CodeChanged, Packed, pack_code

__all__ = ["CodeChanged", "Listing", "Packed", "TooMuchCode", "pack_code", "scan_code"]
