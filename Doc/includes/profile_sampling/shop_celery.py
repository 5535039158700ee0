"""A Celery application, profiled by task."""

import hashlib

import celery
import profile_sampling
from profile_sampling.middleware import label_celery_tasks

app = celery.Celery('shop')
app.conf.task_always_eager = True       # in this process, for this example
label_celery_tasks()


@app.task(name='shop.bill')
def bill(number):
    return hashlib.pbkdf2_hmac('sha256', b'shop', b'', 20_000).hex()


if __name__ == '__main__':
    with profile_sampling.profile(rate_hz=2000) as session:
        for number in range(20):
            bill.delay(number)
    for row in session.profile.label_values('job'):
        print(f'{row.wall_ns / 1e6:8.1f} ms  {row.value}')
