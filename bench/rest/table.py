"""What measurements are made of: samples, rows of tables, and bounds that are to be reached."""

import statistics

median = statistics.median


def p99(samples):
    return sorted(samples)[min(len(samples) - 1, len(samples) * 99 // 100)]


class Section:
    """Lines of Markdown, and what they have to do with what is to be reached."""

    def __init__(self):
        self.lines, self.bounds, self.failed = [], [], False

    def table(self, *columns):
        self.lines += ['', '| ' + ' | '.join(columns) + ' |', '|' + '---|' * len(columns)]

    def row(self, *cells):
        self.lines.append('| ' + ' | '.join(f'{c:.2f}' if isinstance(c, float) else str(c)
                                            for c in cells) + ' |')

    def say(self, line):
        self.lines += ['', line]

    def bound(self, what, least=None, most=None, here=0.0, unit='', below=False, must=False):
        """below: it has to stay under `most`, which is no longer good enough. must:
        the run fails if it does not."""
        good = here >= least if least is not None else here < most if below else here <= most
        limit = f'≥ {least:g}' if least is not None else f'{"<" if below else "≤"} {most:g}'
        self.failed = self.failed or must and not good
        self.bounds.append((what, f'{limit}{unit}', here, good))


def reached(sections):
    end = Section()
    end.table('to be reached', 'bound', 'here', '')
    for section in sections:
        for what, limit, here, good in section.bounds:
            end.row(what, limit, here, 'reached' if good else '**not reached**')
    return end
