/* exp(), log(), pow(), exp2() and log2() of the oldest glibc that a
   distribution starts on.

   glibc 2.29 gave these five a second version that leaves out a call for
   programs of the 1980s, and a linker takes the newest it sees.  Archived
   before libm in the sysroot, so that whoever links with -lm finds these
   and asks for the first version, which computes the same digits. */

double first_exp(double x);
double first_log(double x);
double first_pow(double x, double y);
double first_exp2(double x);
double first_log2(double x);

__asm__(".symver first_exp, exp@GLIBC_2.2.5");
__asm__(".symver first_log, log@GLIBC_2.2.5");
__asm__(".symver first_pow, pow@GLIBC_2.2.5");
__asm__(".symver first_exp2, exp2@GLIBC_2.2.5");
__asm__(".symver first_log2, log2@GLIBC_2.2.5");

#define HIDDEN __attribute__((visibility("hidden")))

HIDDEN double
exp(double x)
{
    return first_exp(x);
}

HIDDEN double
log(double x)
{
    return first_log(x);
}

HIDDEN double
pow(double x, double y)
{
    return first_pow(x, y);
}

HIDDEN double
exp2(double x)
{
    return first_exp2(x);
}

HIDDEN double
log2(double x)
{
    return first_log2(x);
}
