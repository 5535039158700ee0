"""Profile nothing but some requests of a server."""

import profile_sampling


def respond(path):
    return sum(range(len(path) * 100_000))


def handle(path):
    with profile_sampling.region(), profile_sampling.label(path=path):
        return respond(path)


def serve():
    for _ in range(20):
        handle('/search')
        respond('/health')                  # not profiled
        handle('/')


profile_sampling.start(rate_hz=2000, defer=True)
serve()
profile = profile_sampling.stop()
profile.save('requests.pb.gz')
for row in profile.label_values('path'):
    print(f'{row.wall_ns / 1e6:8.1f} ms  {row.value}')
