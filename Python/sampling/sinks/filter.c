/* Sampling profiler: which records a subscriber wants.

   Owns the comparison with what was asked for.  Must not know what becomes of
   the record. */

#include "Python.h"

#include "pycore_runtime.h"           // _PyRuntime

#include "sinks.h"

#define STATE (&_PyRuntime.sampling)

struct _sampling_filter {
    int64_t interpreter_id;
    int has_threads;
    uint64_t *thread_idents;
    uint32_t num_thread_idents;
    char **label_texts;
    uint32_t num_labels;
    // By row of labels, of the tables `serial`: 0 not known yet, 1 does not
    // match, 2 matches.
    uint8_t *matches;
    uint32_t num_matches;
    unsigned int serial;
};

static int
copy_wanted(struct _sampling_filter *f,
            const _PySampling_SubscribeOptions *wanted)
{
    f->has_threads = wanted->thread_idents != NULL;
    f->thread_idents =
        calloc(wanted->num_thread_idents + 1, sizeof(uint64_t));
    f->label_texts = calloc(wanted->num_labels * 2 + 1, sizeof(char *));
    if (f->thread_idents == NULL || f->label_texts == NULL) {
        return 0;
    }
    for (uint32_t i = 0; f->has_threads && i < wanted->num_thread_idents; i++)
    {
        f->thread_idents[f->num_thread_idents++] = wanted->thread_idents[i];
    }
    f->num_labels = wanted->num_labels;
    for (uint32_t i = 0; i < f->num_labels * 2; i++) {
        f->label_texts[i] = strdup(wanted->labels[i]);
        if (f->label_texts[i] == NULL) {
            return 0;
        }
    }
    return 1;
}

struct _sampling_filter *
_PySampling_FilterNew(const _PySampling_SubscribeOptions *wanted, int *ok)
{
    *ok = 1;
    if (wanted->interpreter_id < 0 && wanted->thread_idents == NULL
        && wanted->num_labels == 0)
    {
        return NULL;
    }
    struct _sampling_filter *f = calloc(1, sizeof(*f));
    if (f != NULL) {
        f->interpreter_id = wanted->interpreter_id;
    }
    if (f == NULL || !copy_wanted(f, wanted)) {
        *ok = 0;
        _PySampling_FilterFree(f);
        return NULL;
    }
    return f;
}

void
_PySampling_FilterFree(struct _sampling_filter *f)
{
    if (f == NULL) {
        return;
    }
    for (uint32_t i = 0; f->label_texts != NULL && i < f->num_labels * 2; i++)
    {
        free(f->label_texts[i]);
    }
    free(f->label_texts);
    free(f->thread_idents);
    free(f->matches);
    free(f);
}

size_t
_PySampling_FilterBytes(const struct _sampling_filter *f)
{
    return f == NULL ? 0 : sizeof(*f) + f->num_matches;
}

int
_PySampling_FilterWantsThread(const struct _sampling_filter *f,
                              uint32_t thread)
{
    const struct _sampling_thread_row *t =
        _PySampling_AT(STATE->tables, thread, thread);
    if (f->interpreter_id >= 0 && f->interpreter_id != t->interpreter_id) {
        return 0;
    }
    for (uint32_t i = 0; i < f->num_thread_idents; i++) {
        if (f->thread_idents[i] == t->ident) {
            return 1;
        }
    }
    return !f->has_threads;
}

static int
string_is(const struct _sampling_tables *tables, uint32_t row,
          const char *text)
{
    const struct _sampling_string_row *s = _PySampling_AT(tables, string, row);
    return s->size == strlen(text) && memcmp(s->bytes, text, s->size) == 0;
}

static int
has_label(const struct _sampling_tables *tables, uint32_t labels,
          const char *key, const char *value)
{
    while (labels != 0) {
        const struct _sampling_label_row *label =
            _PySampling_AT(tables, label, labels);
        if (label->key != _PySampling_NO_STRING
            && string_is(tables, label->key, key))
        {
            // It hides outer ones of the same name.
            return string_is(tables, label->value, value);
        }
        labels = label->parent;
    }
    return 0;
}

static int
has_all_labels(const struct _sampling_filter *f,
               const struct _sampling_tables *tables, uint32_t labels)
{
    for (uint32_t i = 0; i < f->num_labels; i++) {
        if (!has_label(tables, labels, f->label_texts[2 * i],
                       f->label_texts[2 * i + 1]))
        {
            return 0;
        }
    }
    return 1;
}

/* Remembered by row, so that most samples need no look at the texts. */
int
_PySampling_FilterWantsLabels(struct _sampling_filter *f, uint32_t labels)
{
    const struct _sampling_tables *tables = STATE->tables;
    if (f->num_labels == 0) {
        return 1;
    }
    if (f->serial != tables->serial) {
        f->serial = tables->serial;
        if (f->num_matches != 0) {
            memset(f->matches, 0, f->num_matches);
        }
    }
    if (labels >= f->num_matches) {
        uint32_t num = Py_MAX(2 * f->num_matches, labels + 64);
        uint8_t *known = realloc(f->matches, num);
        if (known == NULL) {
            return has_all_labels(f, tables, labels);
        }
        memset(known + f->num_matches, 0, num - f->num_matches);
        f->matches = known;
        f->num_matches = num;
    }
    if (f->matches[labels] == 0) {
        f->matches[labels] = 1 + (uint8_t)has_all_labels(f, tables, labels);
    }
    return f->matches[labels] == 2;
}
