"""Add up the orders of a day; orders that were sent twice count once."""

import json
import random
import time


def fetch(count):
    """Stand in for a server: wait, then return one order per line."""
    time.sleep(0.2)
    chance = random.Random(2026)
    prices = [19.99, 4.5, 120.0, 7.25, 35.5] * 8
    return [json.dumps({'id': chance.randrange(count), 'prices': prices})
            for _ in range(count)]


def parse(lines):
    return [json.loads(line) for line in lines]


def distinct(orders):
    seen = []
    kept = []
    for order in orders:
        if order['id'] not in seen:
            seen.append(order['id'])
            kept.append(order)
    return kept


def total(orders):
    amount = 0.0
    for order in orders:
        for price in order['prices']:
            amount += price * 1.19
    return amount


def main():
    orders = distinct(parse(fetch(16_000)))
    print(f'{len(orders):,} orders, {total(orders):,.2f} in all')


if __name__ == '__main__':
    main()
