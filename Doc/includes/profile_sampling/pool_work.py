"""A program of several processes."""

import hashlib
import multiprocessing


def work(number):
    return hashlib.pbkdf2_hmac('sha256', b'%d' % number, b'', 100_000)


if __name__ == '__main__':
    pool = multiprocessing.get_context('fork').Pool(2)
    pool.map(work, range(20), chunksize=1)
    pool.close()
    pool.join()
