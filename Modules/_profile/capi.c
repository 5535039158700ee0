#include "Python.h"
#include "_profile.h"
int _Profile_InitCAPI(PyObject *module) { return 0; }
