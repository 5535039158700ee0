"""A program that always does the same; saves its profile as a file."""

import json
import re
import sys

import profile_sampling

ROUNDS = 60
TEXT = json.dumps([{'id': number, 'name': f'name {number}',
                    'prices': [number / 7, number / 3]}
                   for number in range(1000)])
WORD = re.compile(r'\w+')


def parse():
    return json.loads(TEXT)


def count():
    counts = {}
    for word in WORD.findall(TEXT):
        counts[word] = counts.get(word, 0) + 1
    return counts


def rank(rows):
    return sorted(rows, key=lambda row: -row['prices'][0])


def main():
    with profile_sampling.profile(rate_hz=1000) as session:
        for _ in range(ROUNDS):
            rank(parse())
            count()
    session.profile.save(sys.argv[1])
    print(json.dumps(len(session.profile.samples)))


main()
