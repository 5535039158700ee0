/* Sampling profiler: a profile as records, for another process.

   Owns which record has which columns, in the shape that Modules/_profile/
   export.c gives Python.  Needs no GIL: the profile is the caller's own, with
   tables of its own. */

#include "Python.h"

#include "../tables/profile.h"
#include "reach.h"

static void
begin_part(struct _sampling_records *r, const char *name)
{
    _PySampling_RecordBegin(r, _PySampling_RECORD_PART);
    _PySampling_PutBytes(r, name, strlen(name));
}

static void
put_column(struct _sampling_records *r, const char *name, const void *bytes,
           size_t size)
{
    begin_part(r, name);
    _PySampling_PutBytes(r, bytes, size);
    _PySampling_RecordEnd(r);
}

/* Numbers of rows, each of its own layout, as one field. */
#define BEGIN_ROWS(R, NAME) begin_part((R), (NAME))

static void
put_strings(struct _sampling_records *r, const struct _sampling_tables *t)
{
    BEGIN_ROWS(r, "strings");
    for (uint32_t row = 0; row < t->num_strings; row++) {
        _PySampling_PutBytes(r, t->string_bytes + t->strings[row].offset,
                             t->strings[row].size);
    }
    _PySampling_RecordEnd(r);
}

static void
put_functions(struct _sampling_records *r, const struct _sampling_tables *t)
{
    BEGIN_ROWS(r, "functions");
    for (uint32_t row = 0; row < t->num_functions; row++) {
        const struct _sampling_function_row *f = &t->functions[row];
        _PySampling_PutNumber(r, _PySampling_TablesModuleOf(t, f));
        _PySampling_PutNumber(r, f->qualname);
        _PySampling_PutNumber(r, f->filename);
        _PySampling_PutNumber(r, (uint64_t)f->first_line);
        _PySampling_PutNumber(r, (uint64_t)f->kind);
    }
    _PySampling_RecordEnd(r);
}

static void
put_frames(struct _sampling_records *r, const struct _sampling_tables *t)
{
    BEGIN_ROWS(r, "frames");
    for (uint32_t row = 0; row < t->num_frames; row++) {
        const struct _sampling_frame_row *f = &t->frames[row];
        _PySampling_PutNumber(r, f->function);
        _PySampling_PutNumber(r, (uint64_t)f->line);
        _PySampling_PutNumber(r, (uint64_t)f->column);
        _PySampling_PutNumber(r, (uint64_t)(int64_t)f->offset);
        _PySampling_PutNumber(r, (uint64_t)f->opcode);
    }
    _PySampling_RecordEnd(r);
}

static void
put_labels(struct _sampling_records *r, const struct _sampling_tables *t)
{
    BEGIN_ROWS(r, "labels");
    for (uint32_t row = 0; row < t->num_labels; row++) {
        const struct _sampling_label_row *l = &t->labels[row];
        _PySampling_PutNumber(r, l->parent);
        _PySampling_PutNumber(r, l->key);
        _PySampling_PutNumber(r, l->value);
        _PySampling_PutNumber(r, l->task_id);
        _PySampling_PutNumber(r, l->coroutine);
        _PySampling_PutNumber(r, l->is_work);
    }
    _PySampling_RecordEnd(r);
}

static void
put_threads(struct _sampling_records *r, const struct _sampling_tables *t)
{
    BEGIN_ROWS(r, "threads");
    for (uint32_t row = 0; row < t->num_threads; row++) {
        const struct _sampling_thread_row *thread = &t->threads[row];
        _PySampling_PutNumber(r, thread->ident);
        _PySampling_PutNumber(r, (uint64_t)thread->native_id);
        _PySampling_PutNumber(r, thread->name);
        _PySampling_PutNumber(r, (uint64_t)thread->interpreter_id);
    }
    _PySampling_RecordEnd(r);
}

static void
put_samples(struct _sampling_records *r,
            const struct _sampling_profile *profile)
{
    BEGIN_ROWS(r, "samples");
    for (uint32_t row = 0; row < profile->num_samples; row++) {
        const struct _sampling_sample_row *s = &profile->samples[row];
        if (!_PySampling_Weighs(&s->values)) {
            continue;
        }
        _PySampling_PutNumber(r, s->key.node);
        _PySampling_PutNumber(r, s->key.thread);
        _PySampling_PutNumber(r, s->key.labels);
        _PySampling_PutNumber(r, (uint64_t)s->key.state);
        _PySampling_PutNumber(
            r, s->key.holder_thread == _PySampling_NO_THREAD
               ? UINT64_MAX : s->key.holder_thread);
        _PySampling_PutNumber(r, s->key.holder_node);
#define X(NAME, KIND, UNIT) _PySampling_PutNumber(r, s->values.NAME);
        _PySampling_VALUES(X)
#undef X
    }
    _PySampling_RecordEnd(r);
}

static void
put_tasks(struct _sampling_records *r, const struct _sampling_profile *profile)
{
    static const struct _sampling_task_row none;
    BEGIN_ROWS(r, "tasks");
    for (uint32_t i = 0; i < profile->tables->num_coroutines; i++) {
        const struct _sampling_task_row *row = i < profile->tasks.num_rows
            ? &profile->tasks.rows[i] : &none;
        const struct _sampling_task_values *v = &row->values;
        int used = _PySampling_LIFE_BUCKETS;
        while (used > 0 && row->lives[used - 1] == 0) {
            used--;
        }
        const uint64_t numbers[] = {
            profile->tables->coroutines[i].function, v->num_finished,
            v->num_cancelled, v->running_ns, v->loop_wait_ns, v->awaiting_ns,
            v->longest_step_ns, v->longest_life_ns, v->num_steps,
            v->lives_ns};
        _PySampling_PutBytes(r, numbers, sizeof(numbers));
        _PySampling_PutBytes(r, row->lives,
                             (size_t)used * sizeof(*row->lives));
    }
    _PySampling_RecordEnd(r);
}

static void
put_named(struct _sampling_records *r, const char *part, const char *name,
          uint64_t value)
{
    begin_part(r, part);
    _PySampling_PutBytes(r, name, strlen(name));
    _PySampling_PutNumber(r, value);
    _PySampling_RecordEnd(r);
}

void
_PySampling_PutProfile(struct _sampling_records *r,
                       const struct _sampling_profile *profile)
{
    const struct _sampling_tables *t = profile->tables;
    put_named(r, "head", "is_cpu", profile->options.mode == _PySampling_CPU);
    put_named(r, "head", "rate_hz", (uint64_t)profile->options.rate_hz);
    put_named(r, "head", "depth_frames",
              (uint64_t)profile->options.depth_frames);
    put_named(r, "head", "names", (uint64_t)profile->options.names);
    put_named(r, "head", "start_time_ns", (uint64_t)profile->start_time_ns);
    put_named(r, "head", "duration_ns", profile->duration_ns);
#define X(NAME, KIND, UNIT) put_named(r, "measured", KIND " " UNIT, 0);
    _PySampling_VALUES(X)
#undef X
#define X(NAME) put_named(r, "stats", #NAME, profile->counters.NAME);
    _PySampling_COUNTERS(X)
#undef X
    put_strings(r, t);
    put_functions(r, t);
    put_frames(r, t);
    put_column(r, "nodes", t->nodes,
               (size_t)t->num_nodes * sizeof(struct _sampling_node_row));
    put_labels(r, t);
    put_threads(r, t);
    put_samples(r, profile);
    put_tasks(r, profile);
}
