"""Pages, made of a document that Python computes.

A page adds up what is selected, and draws.  Which samples are idle, which line
is charged, what is a library: all that is worked out here.
"""

from profile_sampling._formats.page.document import document
from profile_sampling._formats.page.html import encode, read_shell

__all__ = ['document', 'encode', 'read_shell']
