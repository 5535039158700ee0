"""Each kind of call site and operator, by the list of callee_sites."""

import time
from collections import Counter, defaultdict

from ..support.sessions import (
    SANITIZER, Session, SessionTest, need_prompt_signals)
from . import callee_sites
from .callee_sites import BASE_NAMES, python_frame

RATE_HZ = 10_000
SITE_S = 0.06
# Below this there is nothing to take a share of.
MIN_SAMPLES = 5
# What takes less is mostly the eval loop's own work around the C function.
FAST_NS = 50
FAST_SHARE = 0.75

setUpModule = need_prompt_signals


class Site:
    """A statement in a loop, in a file of its own."""

    TEMPLATE = 'def site(repeat):\n    for _ in repeat:\n        {}\n'

    def __init__(self, number, row, space):
        self.expected, self.statement, self.opcode = row
        self.filename = f'<site {number}>'
        code = compile(self.TEMPLATE.format(self.statement), self.filename,
                       'exec')
        space = dict(space)
        # The sites' own counters stay out of each other's way.
        exec(code, space)
        self.function = space['site']
        # CPU time by instruction and callee's name: other work on the machine
        # does not change it.
        self.seen = defaultdict(Counter)
        self.samples = Counter()
        self.cpu_ns = 0
        self.passes, self.seconds = 0, 0.0

    def run(self):
        # For so much CPU time: other work on the machine takes no samples.
        repeat = 4
        while self.seconds < SITE_S:
            begin = time.thread_time()
            self.function(range(repeat))
            took = time.thread_time() - begin
            self.seconds += took
            self.passes += repeat
            if took < SITE_S / 20:
                repeat *= 2

    def add(self, sample, frame, callee):
        self.cpu_ns += sample.cpu_ns
        if sample.state == 'gc':
            return              # it ran between two instructions
        if BASE_NAMES.get(frame.opcode) == self.opcode:
            name = callee.function.name if callee is not None else None
            self.seen[frame.instruction_offset][name] += sample.cpu_ns
            self.samples[frame.instruction_offset] += sample.count

    def verdict(self):
        """Of the instruction that does the work: how many samples, how long it
        takes, and the shares of right, unnamed and wrong."""
        if not self.seen:
            return 0, 0, 0, 0, {}
        offset = max(self.seen, key=lambda offset: self.seen[offset].total())
        seen = self.seen[offset]
        total_ns = max(seen.total(), 1)
        shares = {name: ns / total_ns for name, ns in seen.items()}
        right, unnamed = shares.pop(self.expected, 0), shares.pop(None, 0)
        instruction_ns = (self.seconds / self.passes * total_ns
                          / max(self.cpu_ns, 1) * 1e9)
        return self.samples[offset], instruction_ns, right, unnamed, shares

    def complaint(self, min_share):
        """What is wrong with the site, or None."""
        samples, took_ns, right, unnamed, wrong = self.verdict()
        if samples < MIN_SAMPLES:
            return f'only {samples} samples'
        least = min_share if took_ns >= FAST_NS else FAST_SHARE
        # Four standard deviations for chance: there are many sites.
        chance = 4 * (least * (1 - least) / samples) ** 0.5
        if right < least - chance:
            return f'{right:.1%} right, {unnamed:.1%} unnamed, {wrong}'
        return None

    def wrong(self):
        """Counter of samples with a wrong name."""
        samples, _, _, _, wrong = self.verdict()
        return Counter({(self.statement, name): share * samples
                        for name, share in wrong.items()})


class SitesTest(SessionTest):
    """A table of sites, each with the name it is to have."""

    def measure(self, sites):
        with Session(rate_hz=RATE_HZ, names=3) as session:
            for site in sites:
                site.run()
        by_filename = {site.filename: site for site in sites}
        for sample in session.profile.samples:
            frame, callee = python_frame(sample)
            if frame is not None and frame.function.filename in by_filename:
                by_filename[frame.function.filename].add(sample, frame,
                                                         callee)

    def check(self, rows, min_share):
        """Hold each site to its share; return the sites."""
        space = {'__name__': 'sites'}
        exec(callee_sites.SETUP, space)
        sites = [Site(i, row, space) for i, row in enumerate(rows)]
        for site in sites:
            site.function(range(3))     # specializes the bytecode
        self.measure(sites)
        for site in sites:
            with self.subTest(statement=site.statement,
                              expected=site.expected):
                self.assertIsNone(site.complaint(min_share))
        return sites

    def test_sites(self):
        sites = self.check(callee_sites.SLOW, 0.99)
        if not SANITIZER:
            # Else the instructions around the work take longer than it does.
            sites += self.check(callee_sites.FAST, 0.90)
        wrong = Counter()
        for site in sites:
            wrong.update(site.wrong())
        most = 0.003 * sum([site.verdict()[0] for site in sites])
        # Two standard deviations for chance.
        self.assertLessEqual(wrong.total(), most + 2 * most ** 0.5, wrong)
