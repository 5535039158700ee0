import sys

from profile_sampling._cli.main import main

if __name__ == '__main__':
    sys.exit(main())
