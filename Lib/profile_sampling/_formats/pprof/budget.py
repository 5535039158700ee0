"""What reading a file may cost."""


class Budget:
    """Bytes of memory that may still be used.

    Sizes of objects are estimates on the high side: what counts is that
    nothing in the file can make the reader spend memory without limit.
    """

    __slots__ = ('limit', 'left')

    def __init__(self, limit):
        self.limit = self.left = limit

    def spend(self, n_bytes):
        """Account for memory that stays in use."""
        if n_bytes > self.left:
            raise ValueError(
                f'needs more than {self.limit:,} bytes of memory to '
                'read; pass a larger max_bytes if you trust the file')
        self.left -= n_bytes

    def need(self, n_bytes):
        """Account for memory that is free again soon."""
        self.spend(n_bytes)
        self.left += n_bytes
