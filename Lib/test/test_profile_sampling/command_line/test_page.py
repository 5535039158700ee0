"""Pages that commands write: where they are, and when a browser is opened."""

import os
import sys
from unittest import mock

from profile_sampling._cli import page

from ..support.builders import example
from .test_cli import CommandLineTest


class OpenTest(CommandLineTest):

    def opened(self, *, is_terminal=True, **environment):
        """Return the addresses that a browser is asked to open."""
        path = os.path.join(self.directory, 'a b.html')
        with (mock.patch('webbrowser.open', return_value=True) as opened,
              mock.patch.dict(os.environ, environment, clear=True),
              mock.patch.object(sys, 'stderr'),
              mock.patch.object(sys, 'stdout') as stdout):
            stdout.isatty.return_value = is_terminal
            page.save(example().profile()._tables, path, True,
                      with_source=False)
        self.assertTrue(os.path.exists(path))
        return [call.args[0] for call in opened.call_args_list]

    def test_with_a_terminal_and_a_display(self):
        address = f'file://{self.directory}/a%20b.html'
        for name in 'DISPLAY', 'WAYLAND_DISPLAY':
            self.assertEqual(self.opened(**{name: ':0'}), [address])

    def test_not_without(self):
        self.assertEqual(self.opened(), [])
        self.assertEqual(self.opened(DISPLAY=':0', is_terminal=False), [])
        for name in 'SSH_CONNECTION', 'SSH_TTY':
            self.assertEqual(self.opened(DISPLAY=':0', **{name: '1'}), [])


class NamesTest(CommandLineTest):

    def test_names_that_are_no_text(self):
        """As the system spells them, whatever they are."""
        name = os.fsdecode(b'caf\xe9\x1b[2J')
        os.mkdir(os.path.join(self.directory, name))
        path = f'{name}/p.pb.gz'
        for each in path, f'{name}/q.pb.gz':
            example().profile().save(os.path.join(self.directory, each))
        self.assertEqual(self.run_cli('report', '--html', path),
                         (0, os.fsencode(f'{name}/p.html\n'), ''))
        for arguments in (['report', path], ['list', name],
                          *[['report', '--format', format, path]
                            for format in ('json', 'tsv', 'markdown')],
                          ['diff', path, f'{name}/q.pb.gz'],
                          ['report', '--html', '--open', path],
                          ['merge', '-o', f'{name}/o.txt', path]):
            with self.subTest(arguments=arguments):
                status, _, err = self.run_cli(*arguments)
                self.assertEqual(status, 0, err)
                self.assertNotIn('\x1b', err)
