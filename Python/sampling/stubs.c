/* The sampling profiler where there is none: all that is left of the engine.

   The hooks are nothing (pycore_sampling.h), and the _profile module answers
   for itself (Modules/_profile/unsupported.c).  So this needs no header that
   only some platforms have. */

#include "Python.h"

#include "pycore_initconfig.h"        // _Py_GetEnv()
#include "pycore_interp.h"            // PyInterpreterState.config
#include "pycore_pystate.h"           // _PyInterpreterState_GetConfig()
#include "pycore_sampling.h"

/* Is the mode, the first word of what is asked for, off? */
static int
is_off(const wchar_t *text)
{
    return wcscmp(text, L"off") == 0 || wcsncmp(text, L"off,", 4) == 0;
}

/* Who asks for a profile, or NULL: nobody does. */
static const char *
source_of_request(const PyConfig *config)
{
    const wchar_t *option = _Py_get_xoption(&config->xoptions, L"sampleprof");
    if (option != NULL) {
        const wchar_t *equals = wcschr(option, L'=');
        int asks = equals == NULL || !is_off(equals + 1);
        return asks ? "-X sampleprof" : NULL;
    }
    const char *env = _Py_GetEnv(config->use_environment, "PYTHONSAMPLEPROF");
    int asks = env != NULL && strcmp(env, "off") != 0
        && strncmp(env, "off,", 4) != 0;
    return asks ? "PYTHONSAMPLEPROF" : NULL;
}

PyStatus
_PySampling_InitFromConfig(PyThreadState *tstate)
{
    const char *source =
        source_of_request(_PyInterpreterState_GetConfig(tstate->interp));
    if (source != NULL) {
        // The program matters more than its profile.
        PySys_WriteStderr("%s: not profiling: %s\n", source,
                          _PySampling_MISSING);
    }
    return _PyStatus_OK();
}
