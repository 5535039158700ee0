/* What the files of the _profile module share. */

#ifndef Py_PROFILE_MODULE_H
#define Py_PROFILE_MODULE_H

#include "../../Python/sampling/alloc/alloc.h"
#include "../../Python/sampling/calls/calls.h"
#include "../../Python/sampling/session/control.h"
#include "../../Python/sampling/sinks/sinks.h"
#include "../../Python/sampling/tables/labels.h"

/* State of the module, one per interpreter. */
typedef struct {
    // Labels (labels.c).
    PyObject *label_var;            // ContextVar of label sets
    PyTypeObject *label_set_type;
    PyObject *empty_labels;
    PyObject *known_sets;           // dict: pairs of a label set -> the set
    PyTypeObject *request_type;     // of a request under way
    // Subscriptions (subscription.c).
    PyTypeObject *subscription_type;
    struct _sampling_wakeup wakeup;
} profile_state;

static inline profile_state *
get_profile_state(PyObject *module)
{
    return (profile_state *)PyModule_GetState(module);
}

// errors.c.  Sets the exception for a status; returns None for _PySampling_OK.
extern PyObject *_PyProfile_RaiseStatus(_PySampling_Status status);
// Says which of the options is not the session's.  Returns NULL.
extern PyObject *_PyProfile_RaiseJoin(const _PySampling_Options *asked);
extern int _PyProfile_CheckRange(const char *name, long long value,
                                 long long min, long long max);
extern int _PyProfile_ReadMode(const char *text, _PySampling_Mode *mode);
extern int _PyProfile_CheckOptions(const _PySampling_Options *options);

// labels.c: more functions of the module, and their part of its state.
extern PyMethodDef _PyProfile_LabelMethods[];
extern int _PyProfile_InitLabels(PyObject *module, profile_state *state);
extern int _PyProfile_TraverseLabels(profile_state *state, visitproc visit,
                                     void *arg);
extern void _PyProfile_ClearLabels(profile_state *state);
// The pairs that `changes` (dict) makes of the current set.
extern PyObject *_PyProfile_PairsWith(profile_state *state, PyObject *changes);

// subscription.c
extern int _PyProfile_InitSubscriptions(PyObject *module,
                                        profile_state *state);
extern void _PyProfile_ForgetSubscriptions(profile_state *state);
extern PyObject *_PyProfile_Subscribe(profile_state *state,
                                      const _PySampling_SubscribeOptions *what,
                                      const _PySampling_Options *options);
extern PyObject *_PyProfile_CallExcluded(PyObject *callback, PyObject *arg);
extern int _PyProfile_IsExcluded(void);
extern PyObject *_PyProfile_StartHelper(PyObject *start, PyObject *run,
                                        int is_daemon);

// tasks.c
extern int _PyProfile_InitTasks(PyObject *module);

// delivery.c: more functions of the module.
extern PyMethodDef _PyProfile_DeliveryMethods[];

// export.c: the dict that profile_sampling reads.
extern PyObject *
_PyProfile_Export(const struct _sampling_profile *profile, int has_tasks);
extern PyObject *
_PyProfile_ExportProfile(const struct _sampling_profile *profile);
extern PyObject *
_PyProfile_ExportCounters(const struct _sampling_counters *counters);
// None for NULL.
extern PyObject *_PyProfile_ExportCalls(const struct _sampling_calls *calls);

// capi.c
extern int _PyProfile_InitCAPI(PyObject *module);

#endif  // !Py_PROFILE_MODULE_H
