/* To be loaded before libc by test_restricted.py: each thread's stack begins
   with this much. */

static __thread volatile char large[512 * 1024];

__attribute__((constructor))
static void
use_large(void)
{
    large[0] = 1;
}
