/* Sampling profiler: what the command line asks for.

   Reads -X sampleprof=MODE[,KEY=VALUE...] and PYTHONSAMPLEPROF.  Must not know
   what is done with the answer (session/autostart.c). */

#include "Python.h"

#include "pycore_initconfig.h"        // _Py_GetEnv()
#include "pycore_runtime.h"           // _PyRuntime

#include "../clock/clock.h"
#include "options.h"

#include <errno.h>
#include <fcntl.h>                    // AT_EACCESS
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>                   // faccessat()
#include <wchar.h>

/* A text that is one line and leaves the terminal alone, or NULL. */
static PyObject *
printable(PyObject *text)
{
    Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    for (Py_ssize_t i = 0; i < length; i++) {
        if (!Py_UNICODE_ISPRINTABLE(PyUnicode_READ_CHAR(text, i))) {
            PyObject *bytes = PyUnicode_AsUnicodeEscapeString(text);
            PyObject *escaped = bytes == NULL ? NULL
                : PyUnicode_FromEncodedObject(bytes, "ascii", NULL);
            Py_XDECREF(bytes);
            return escaped;
        }
    }
    return Py_NewRef(text);
}

/* Says on sys.stderr, which escapes what the terminal cannot show, what is
   wrong with the text.  Returns -1. */
int
_PySampling_Complain(const struct _sampling_request *request,
                     const char *format, ...)
{
    va_list args;
    va_start(args, format);
    PyObject *message = PyUnicode_FromFormatV(format, args);
    va_end(args);
    if (message != NULL) {
        Py_SETREF(message, printable(message));
    }
    if (message == NULL) {
        PyErr_Clear();
        PySys_WriteStderr("%s: bad text\n", request->source);
    }
    else {
        PySys_FormatStderr("%s: %U\n", request->source, message);
        Py_DECREF(message);
    }
    return -1;
}

#define KEYS L"rate_hz, out, format, depth_frames, names, signal, defer, " \
             L"duration_s, timeline, children, quiet"

/* Complains of a word that is no mode or key. */
static int
complain_of_word(const struct _sampling_request *request, const char *what,
                 const wchar_t *word, const wchar_t *known)
{
    const wchar_t *key = KEYS;
    while (key != NULL) {
        // No two keys begin alike, and few people err so early.
        if (wcsncmp(word, key, 3) == 0) {
            return _PySampling_Complain(
                request, "%s '%ls'. Did you mean '%.*ls='?", what, word,
                (int)wcscspn(key, L","), key);
        }
        key = wcschr(key, L' ');
        key = key != NULL ? key + 1 : NULL;
    }
    return _PySampling_Complain(request, "%s '%ls': expected %ls", what, word,
                                known);
}

static int
parse_int(const struct _sampling_request *request, const char *key,
          const wchar_t *value, int min, int max, int *result)
{
    // Digits only: wcstol() would take blanks and signs as well.
    size_t digits = wcsspn(value, L"0123456789");
    long n = -1;
    if (digits > 0 && digits < 10 && value[digits] == L'\0') {
        n = wcstol(value, NULL, 10);
    }
    if (n < min || n > max) {
        return _PySampling_Complain(
            request, "%s=%ls: expected a whole number from %d to %d", key,
            value, min, max);
    }
    *result = (int)n;
    return 0;
}

static int
parse_signal(struct _sampling_request *request, const wchar_t *value)
{
    int *signum = &request->options.signal;
    if (parse_int(request, "signal", value, 1, Py_NSIG - 1, signum) < 0) {
        return -1;
    }
    if (!_PySampling_IsUsableSignal(*signum)) {
        return _PySampling_Complain(
            request, "signal=%ls: " _PySampling_USABLE_SIGNALS, value);
    }
    return 0;
}

static int
parse_mode(struct _sampling_request *request, const wchar_t *mode)
{
    // 1 and 0 as other variables have them.
    if (wcscmp(mode, L"wall") == 0 || wcscmp(mode, L"1") == 0) {
        request->options.mode = _PySampling_WALL;
        return 0;
    }
    if (wcscmp(mode, L"cpu") == 0) {
        request->options.mode = _PySampling_CPU;
        return 0;
    }
    if (wcscmp(mode, L"off") == 0 || wcscmp(mode, L"0") == 0) {
        request->is_off = 1;
        return 0;
    }
    return complain_of_word(request, "unknown mode", mode,
                            L"wall, cpu or off");
}

static int
parse_text_value(const struct _sampling_request *request, const char *key,
                 wchar_t *value, wchar_t **result)
{
    if (*value == L'\0') {
        return _PySampling_Complain(request, "%s= needs a value", key);
    }
    *result = value;
    return 0;
}

static int
parse_names(struct _sampling_request *request, const wchar_t *value)
{
    // In the order of their bits; the same list stands in
    // Lib/profile_sampling/_data/values.py.
    static const wchar_t *const names[] = {
        L"off", L"calls", L"opcodes", L"all"};
    for (size_t i = 0; i < Py_ARRAY_LENGTH(names); i++) {
        if (wcscmp(value, names[i]) == 0) {
            request->options.names = (int)i;
            return 0;
        }
    }
    return _PySampling_Complain(
        request, "names=%ls: expected off, calls, opcodes or all", value);
}

/* More than thirty years. */
#define MAX_DURATION_S 999999999

static int
parse_item(struct _sampling_request *request, wchar_t *item, int is_first)
{
    _PySampling_Options *o = &request->options;
    wchar_t *equals = wcschr(item, L'=');
    if (equals == NULL) {
        if (is_first) {
            return parse_mode(request, item);
        }
        return complain_of_word(request, "no KEY=VALUE:", item, KEYS);
    }
    *equals = L'\0';
    wchar_t *value = equals + 1;
    if (wcscmp(item, L"rate_hz") == 0) {
        return parse_int(request, "rate_hz", value, 1,
                         _PySampling_MAX_RATE_HZ, &o->rate_hz);
    }
    if (wcscmp(item, L"depth_frames") == 0) {
        return parse_int(request, "depth_frames", value, 1,
                         _PySampling_MAX_DEPTH_FRAMES, &o->depth_frames);
    }
    if (wcscmp(item, L"names") == 0) {
        return parse_names(request, value);
    }
    if (wcscmp(item, L"signal") == 0) {
        return parse_signal(request, value);
    }
    if (wcscmp(item, L"out") == 0) {
        return parse_text_value(request, "out", value, &request->out);
    }
    if (wcscmp(item, L"format") == 0) {
        return parse_text_value(request, "format", value, &request->format);
    }
    if (wcscmp(item, L"defer") == 0) {
        return parse_int(request, "defer", value, 0, 1, &o->is_deferred);
    }
    if (wcscmp(item, L"duration_s") == 0) {
        return parse_int(request, "duration_s", value, 1, MAX_DURATION_S,
                         &request->duration_s);
    }
    if (wcscmp(item, L"timeline") == 0) {
        return parse_int(request, "timeline", value, 0, 1,
                         &request->timeline);
    }
    if (wcscmp(item, L"children") == 0) {
        return parse_int(request, "children", value, 0, 1,
                         &request->children);
    }
    if (wcscmp(item, L"parent") == 0) {
        // Not for people: see session/autostart.c.
        return parse_text_value(request, "parent", value, &request->parent);
    }
    if (wcscmp(item, L"quiet") == 0) {
        return parse_int(request, "quiet", value, 0, 1, &request->quiet);
    }
    return complain_of_word(request, "unknown key", item, KEYS);
}

/* Each process needs a file of its own. */
static int
check_children(struct _sampling_request *request)
{
    int is_per_process =
        request->out == NULL || wcsstr(request->out, L"{pid}") != NULL;
    if (request->children < 0) {
        request->children = is_per_process;
    }
    if (request->children && !is_per_process) {
        return _PySampling_Complain(
            request,
            "children=1 needs {pid} in out=%ls, so that each process has a "
            "file of its own", request->out);
    }
    request->is_per_process = is_per_process;
    return 0;
}

/* With the number of the process in it.  Returns memory of PyMem_Malloc(), or
   NULL. */
static char *
path_of(const wchar_t *out)
{
    PyObject *text = PyUnicode_FromWideChar(out, -1);
    PyObject *pid = PyUnicode_FromFormat("%d", (int)getpid());
    PyObject *mark = PyUnicode_FromString("{pid}");
    PyObject *bytes = NULL;
    if (text != NULL && pid != NULL && mark != NULL) {
        Py_SETREF(text, PyUnicode_Replace(text, mark, pid, -1));
        bytes = text != NULL ? PyUnicode_EncodeFSDefault(text) : NULL;
    }
    char *path = NULL;
    if (bytes != NULL) {
        path = PyMem_Malloc((size_t)PyBytes_GET_SIZE(bytes) + 1);
    }
    if (path != NULL) {
        strcpy(path, PyBytes_AS_STRING(bytes));
    }
    Py_XDECREF(bytes);
    Py_XDECREF(mark);
    Py_XDECREF(pid);
    Py_XDECREF(text);
    PyErr_Clear();
    return path;
}

/* The path is cut in place. */
static const char *
directory_of(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash == NULL) {
        return ".";
    }
    slash[slash == path] = '\0';
    return path;
}

static int
open_directory(int at, const char *path)
{
    int flags = O_DIRECTORY | O_CLOEXEC;
    int fd = openat(at, path, O_RDONLY | flags);
    // One that can be written may be one that cannot be read.
    return fd < 0 && errno == EACCES ? openat(at, path, O_PATH | flags) : fd;
}

/* What Lib/profile_sampling/_files.py refuses to write. */
int
_PySampling_CanWrite(const struct _sampling_request *request, const char *cwd,
                     int *directory)
{
    *directory = -1;
    const wchar_t *out = request->out != NULL ? request->out : L".";
    char *path = path_of(out);
    if (path == NULL) {
        return 1;               // it will be seen at the end
    }
    int ok = 1;
    struct stat st;
    int at = cwd == NULL ? AT_FDCWD : open_directory(AT_FDCWD, cwd);
    if (at != -1 && request->out != NULL
        && fstatat(at, path, &st, AT_SYMLINK_NOFOLLOW) == 0
        && (!S_ISREG(st.st_mode) || st.st_uid != geteuid()))
    {
        ok = 0;
        (void)_PySampling_Complain(
            request, "out=%ls: %s", out, S_ISDIR(st.st_mode)
            ? "is a directory; give the name of a file in it"
            : "is no regular file of this user, and is not replaced");
    }
    else {
        const char *name = directory_of(path);
        *directory = at == -1 ? -1 : open_directory(at, name);
        if (*directory < 0
            ? errno != EMFILE && errno != ENFILE
            : faccessat(at, name, W_OK | X_OK, AT_EACCESS) < 0)
        {
            ok = 0;
            (void)_PySampling_Complain(
                request, "out=%ls: cannot write to the directory %s: %s",
                out, name, strerror(errno));
        }
    }
    if (at >= 0) {
        (void)close(at);
    }
    if (!ok && *directory >= 0) {
        (void)close(*directory);
        *directory = -1;
    }
    PyMem_Free(path);
    return ok;
}

/* Takes the text apart in place. */
static int
parse(struct _sampling_request *request, wchar_t *text)
{
    int is_first = 1;
    while (text != NULL) {
        wchar_t *comma = wcschr(text, L',');
        if (comma != NULL) {
            *comma++ = L'\0';
        }
        if (parse_item(request, text, is_first) < 0) {
            return -1;
        }
        text = comma;
        is_first = 0;
    }
    if (request->timeline && request->options.is_deferred) {
        return _PySampling_Complain(
            request, "timeline=1: a deferred session has no time line");
    }
    return check_children(request);
}

/* The text after "sampleprof=", "" for none, or NULL if profiling was not
   asked for; memory from PyMem_RawMalloc(). */
static wchar_t *
requested_text(const PyConfig *config, struct _sampling_request *request)
{
    const wchar_t *xoption = _Py_get_xoption(&config->xoptions,
                                             L"sampleprof");
    if (xoption != NULL) {
        request->source = "-X sampleprof";
        const wchar_t *equals = wcschr(xoption, L'=');
        return _PyMem_RawWcsdup(equals != NULL ? equals + 1 : L"wall");
    }
    const char *env = _Py_GetEnv(config->use_environment, "PYTHONSAMPLEPROF");
    if (env != NULL) {
        request->source = "PYTHONSAMPLEPROF";
        request->is_inherited = 1;
        return Py_DecodeLocale(env, NULL);
    }
    return NULL;
}

/* multiprocessing's resource tracker runs no code of the program. */
static int
is_resource_tracker(const PyConfig *config)
{
    static const wchar_t command[] =
        L"from multiprocessing.resource_tracker import main;";
    return config->run_command != NULL
        && wcsncmp(config->run_command, command,
                   Py_ARRAY_LENGTH(command) - 1) == 0;
}

int
_PySampling_ReadOptions(const PyConfig *config,
                        struct _sampling_request *request)
{
    *request = (struct _sampling_request){
        .options = {
            .rate_hz = _PySampling_DEFAULT_RATE_HZ,
            .depth_frames = _PySampling_DEFAULT_DEPTH_FRAMES,
            .names = _PySampling_ALL_NAMES,
        },
        .children = -1,
    };
    if (is_resource_tracker(config)) {
        return 0;
    }
    request->text = requested_text(config, request);
    if (request->text == NULL) {
        return 0;
    }
    int result = parse(request, request->text);
    // Programs that a profiled one starts are asked to be quiet.
    request->is_inherited |= request->quiet || request->parent != NULL;
    if (result == 0 && !request->is_off) {
        return 1;
    }
    PyMem_RawFree(request->text);
    return result;
}
