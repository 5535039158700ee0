"""Makes pictures of pages: README.md and the documents show some.

    ./python Tools/docs/picture.py my.pb.gz Doc/images/page.png [FRAGMENT
        [WIDTH,HEIGHT [dark]]]

Chromium (Debian's package) shows the page and takes the picture of it.  The
same profile and the same browser make the same picture.  FRAGMENT is of the
page's address, such as view=flame.  Run it in the directory of the program:
then the page has its source.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

SIZE = '1280,820'
# What the page has for unpacking itself and its profile, in its own time.
BUDGET_MS = 20_000
MOST_BYTES = 250_000


def take(profile, picture, fragment='', size=SIZE, theme='light'):
    browser = shutil.which('chromium')
    if browser is None:
        sys.exit('picture.py: install Debian\'s package chromium')
    with tempfile.TemporaryDirectory() as directory:
        page = pathlib.Path(directory, 'page.html')
        subprocess.run([sys.executable, '-m', 'profile_sampling', 'report',
                        profile, '--source-root', '.', '-o', page],
                       check=True, stdout=subprocess.DEVNULL)
        subprocess.run(
            [browser, '--headless=new', '--no-sandbox', '--disable-gpu',
             '--disable-dev-shm-usage', '--hide-scrollbars',
             f'--user-data-dir={directory}/browser',
             f'--window-size={size}', '--force-device-scale-factor=1',
             '--force-color-profile=srgb',
             '--blink-settings=preferredColorScheme='
             f'{0 if theme == "dark" else 1}',
             f'--virtual-time-budget={BUDGET_MS}',
             f'--screenshot={pathlib.Path(picture).absolute()}',
             f'{page.as_uri()}#{fragment}'],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    length = pathlib.Path(picture).stat().st_size
    if length > MOST_BYTES:
        sys.exit(f'picture.py: {picture} has {length:,} bytes, more than '
                 f'{MOST_BYTES:,}')


if __name__ == '__main__':
    if not 3 <= len(sys.argv) <= 6:
        sys.exit(__doc__)
    take(*sys.argv[1:])
