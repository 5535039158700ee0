"""Pages, made of a document that Python computes."""

from profile_sampling._formats.page.document import document

__all__ = ['document']
