/* Sampling profiler: the frames that another process gets.

   Owns what is said of a frame: its code once, then lines; and what C function
   it is in.  Must not know whose frame it is.  Async-signal-safe, while nobody
   but the caller runs Python code. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "../base/frame.h"
#include "../native/naming.h"
#include "../tables/store.h"
#include "reach.h"


static void
put_code(struct _sampling_records *r, _PyInterpreterFrame *frame,
         const void *key)
{
    PyCodeObject *code = _PySampling_FrameCode(frame);
    _PySampling_RecordBegin(r, _PySampling_RECORD_CODE);
    _PySampling_PutNumber(r, (uintptr_t)key);
    _PySampling_PutNumber(r, (uint64_t)code->co_firstlineno);
    _PySampling_PutText(r, _PySampling_DictGet(_PySampling_FrameGlobals(frame),
                                               &_Py_ID(__name__)));
    _PySampling_PutText(r, code->co_filename);
    _PySampling_PutText(r, code->co_qualname);
    _PySampling_RecordEnd(r);
}

static void
put_callee(struct _sampling_records *r, PyInterpreterState *interp,
           _PyInterpreterFrame *frame)
{
    _PySampling_Frame callee[_PySampling_CALLEE_ENTRIES];
    struct _sampling_name name;
    _PySampling_SlotsClear(r->slots);
    if (!_PySampling_CaptureCallee(interp, r->slots, frame, NULL, callee)
        || !_PySampling_NameCallee(interp, callee[0], callee[1], &name))
    {
        return;
    }
    _PySampling_RecordBegin(r, _PySampling_RECORD_CALLEE);
    _PySampling_PutNumber(r, _PySampling_KindOfCallee(callee[1])
                             == _PySampling_CALLEE_OPERATOR);
    _PySampling_PutBytes(r, name.module.bytes, (size_t)name.module.size);
    _PySampling_PutBytes(r, name.qualname.bytes, (size_t)name.qualname.size);
    _PySampling_RecordEnd(r);
}

void
_PySampling_PutFrame(struct _sampling_records *r, PyInterpreterState *interp,
                     _PyInterpreterFrame *frame, const void *key, int is_in_c)
{
    PyCodeObject *code = _PySampling_FrameCode(frame);
    if (_PySampling_IsNew(r, key)) {
        put_code(r, frame, key);
    }
    if (is_in_c) {
        put_callee(r, interp, frame);
    }
    _PySampling_RecordBegin(r, _PySampling_RECORD_FRAME);
    _PySampling_PutNumber(r, (uintptr_t)key);
    _PySampling_PutNumber(r, (uint64_t)PyCode_Addr2Line(
        code, _PyInterpreterFrame_LASTI(frame) * (int)sizeof(_Py_CODEUNIT)));
    _PySampling_RecordEnd(r);
}
