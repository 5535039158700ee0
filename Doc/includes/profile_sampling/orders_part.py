"""Profile a part of a program, and look at the profile in Python."""

import orders
import profile_sampling

lines = orders.fetch(16_000)
with profile_sampling.profile() as session:
    orders.distinct(orders.parse(lines))

profile = session.profile
print(profile)
for row in profile.instructions()[:3]:
    names = [callee.function.name for callee in row.callees]
    print(f'{row.self_wall_ns / 1e6:8.1f} ms  '
          f'{row.function.name}:{row.line} {row.base_opname} {names[:1]}')
