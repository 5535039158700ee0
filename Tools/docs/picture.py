"""Makes the picture of the page that README.md shows.

    make demo
    ./python Tools/docs/picture.py build/demo/http.pb.gz Doc/images/page.png

Chromium (Debian's package) shows the page and takes the picture of it: in
light colours, as large as in SIZE.  The same profile and the same browser make
the same picture.  A fragment of the page's address may follow, such as
view=gil.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

SIZE = '1120,690'
# What the page has for unpacking itself and its profile, in its own time.
BUDGET_MS = 20_000
MOST_BYTES = 150_000


def take(profile, picture, fragment=''):
    browser = shutil.which('chromium')
    if browser is None:
        sys.exit('picture.py: install Debian\'s package chromium')
    with tempfile.TemporaryDirectory() as directory:
        page = pathlib.Path(directory, 'page.html')
        subprocess.run([sys.executable, '-m', 'profile_sampling', 'report',
                        profile, '--no-source', '-o', page], check=True)
        subprocess.run(
            [browser, '--headless=new', '--no-sandbox', '--disable-gpu',
             '--disable-dev-shm-usage', '--hide-scrollbars',
             f'--user-data-dir={directory}/browser',
             f'--window-size={SIZE}', '--force-device-scale-factor=1',
             '--force-color-profile=srgb',
             '--blink-settings=preferredColorScheme=1',
             f'--virtual-time-budget={BUDGET_MS}',
             f'--screenshot={pathlib.Path(picture).absolute()}',
             f'{page.as_uri()}#{fragment}'],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    size = pathlib.Path(picture).stat().st_size
    if size > MOST_BYTES:
        sys.exit(f'picture.py: {picture} has {size:,} bytes, more than '
                 f'{MOST_BYTES:,}')


if __name__ == '__main__':
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    take(*sys.argv[1:])
