"""Sphinx's configuration.  "make docs" builds the pages in build/html."""

project = 'CPython with a sampling profiler'
author = 'The CPython sampling profiler'
copyright = 'licensed as CPython is'
html_title = 'CPython with a sampling profiler'

# For "testsetup", which the pages do not show: see Tools/docs/pages.py.
extensions = ['sphinx.ext.doctest']
exclude_patterns = []
highlight_language = 'python3'
# A reference that leads nowhere is an error.  What belongs to CPython's own
# documentation is marked with "!" and is no link.
nitpicky = True
nitpick_ignore = [('c:identifier', 'size_t')]

html_theme = 'alabaster'
html_theme_options = {
    'description': 'How a program spends its time, measured by the interpreter',
    'page_width': '84rem',
    # Wide enough for the text report, which has 100 columns.
    'body_max_width': '100%',
    'sidebar_width': '16rem',
    'show_powered_by': False,
}
html_sidebars = {'**': ['about.html', 'localtoc.html', 'searchbox.html']}
html_show_copyright = False
html_show_sourcelink = False
html_use_index = True
