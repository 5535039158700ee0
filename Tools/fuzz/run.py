"""Fuzzing of what reads files, names and options, as long as you like.

    ./python Tools/fuzz/run.py [files|options|names|coverage] --seconds 60 --seed 1

files     mutations of valid pprof files, some of them bombs, read within a
          limit of the address space
names     names of files in profiles that are made pages: nothing of the disk
          may be in these but what is allowed
options   texts for -X sampleprof and PYTHONSAMPLEPROF
coverage  bytes that atheris guides by the code they reach (package atheris)

A failure is shown with the seed that repeats it.  The status is 0 if none.
"""

import argparse
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter

from test.test_profile_sampling.support import (
    foreign, fuzzing, option_texts)

# What is used beside what a file may cost.  Objects that the judgement makes
# of a profile are not the reader's.
SPARE_BYTES = 512 << 20
# Not a bar: a reader that takes longer for any file is worth a look.
SLOW_SECONDS = 20


def limit_memory():
    with open('/proc/self/statm') as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    limit = used + fuzzing.MAX_BYTES + SPARE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def judge_file(data, directory):
    path = os.path.join(directory, 'p.pb.gz')
    with open(path, 'wb') as file:
        file.write(data)
    before = time.process_time()
    try:
        fuzzing.judge(path)
        return 'read'
    except fuzzing.Refused as exc:
        return ('too large' if 'bytes of memory' in str(exc) else 'refused')
    finally:
        os.unlink(path)
        if time.process_time() - before > SLOW_SECONDS:
            raise AssertionError('that took '
                                 f'{time.process_time() - before:.0f} s')


def one_file(rng, messages, directory):
    return judge_file(fuzzing.file_content(rng, messages), directory)


def one_option(rng, messages, directory):
    text = option_texts.text(rng)
    by_variable = bool(text) and rng.random() < 0.3
    return {0: 'accepted', 2: 'refused'}[option_texts.judge(text,
                                                            by_variable)]


def one_name(rng, messages, directory):
    path = os.path.join(os.path.realpath(directory), str(rng.random()))
    os.mkdir(path)
    files = foreign.Files(path)
    sys.path.insert(0, files.inside)
    # What hangs is a failure, too.
    signal.alarm(SLOW_SECONDS)
    try:
        profile, source = foreign.any_profile(rng, files)
        return ('shown' if foreign.judge(profile, source, files)
                else 'not shown')
    finally:
        signal.alarm(0)
        sys.path.remove(files.inside)
        files.close()
        shutil.rmtree(path)


def run(kind, one, options):
    """Run seeds until the time is over; return how many failed."""
    messages = fuzzing.seeds()
    outcomes = Counter()
    shown = set()
    end = time.monotonic() + options.seconds
    seed = options.seed
    with tempfile.TemporaryDirectory() as directory:
        while time.monotonic() < end or seed == options.seed:
            try:
                outcome = one(random.Random(seed), messages, directory)
            except Exception as exc:
                outcome = 'failures'
                text = traceback.format_exc()
                place = traceback.extract_tb(exc.__traceback__)[-1]
                if (type(exc), place.lineno) not in shown:
                    shown.add((type(exc), place.lineno))
                    print(f'FAILED: seed {seed}\n{text}', flush=True)
            outcomes[outcome] += 1
            seed += 1
    print(f'{kind}: seeds {options.seed} to {seed - 1}: '
          + ', '.join([f'{n:,} {name}' for name, n in
                       sorted(outcomes.items())]))
    return outcomes['failures']


def run_coverage(options):
    """Does not return: atheris ends the process."""
    import atheris
    with atheris.instrument_imports(include=['profile_sampling']):
        for name in [name for name in sys.modules
                     if name.startswith('profile_sampling')]:
            del sys.modules[name]
        import profile_sampling._formats.pprof.reader as reader

    def judge(data):
        try:
            reader.decode(data, fuzzing.MAX_BYTES)
        except ValueError:
            pass
    corpus = tempfile.mkdtemp(prefix='fuzz')
    for number, data in enumerate(fuzzing.seeds()):
        with open(os.path.join(corpus, str(number)), 'wb') as file:
            file.write(data)
    atheris.Setup([sys.argv[0], corpus, f'-seed={options.seed}',
                   f'-max_total_time={options.seconds:.0f}',
                   '-max_len=4096', '-rss_limit_mb=1024'], judge)
    atheris.Fuzz()


def main():
    parser = argparse.ArgumentParser(
        description='Fuzz what reads files, names and options.')
    parser.add_argument('kind', nargs='?', default='all',
                        choices=('files', 'options', 'names', 'coverage',
                                 'all'))
    parser.add_argument('--seconds', type=float, default=60,
                        help='for how long, each (default: 60)')
    parser.add_argument('--seed', type=int, default=1)
    options = parser.parse_args()
    if options.kind == 'coverage':
        return run_coverage(options)
    kinds = {'options': one_option, 'names': one_name, 'files': one_file}
    if options.kind != 'all':
        kinds = {options.kind: kinds[options.kind]}
    failures = 0
    for kind, one in kinds.items():
        if kind == 'files':
            limit_memory()
        failures += run(kind, one, options)
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
