"""The document of a page, which Python computes.

A page adds up what is selected, and draws.  Which samples are idle, which line
is charged, what is a library: all that is worked out here.
"""

from profile_sampling._formats.page.document import document

__all__ = ['document']
