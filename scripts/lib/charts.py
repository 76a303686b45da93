"""Charts for scripts/report, as HTML and inline SVG: bars, lines, a roofline, a timeline.

Every function takes plain numbers and returns text. Colours are CSS variables of the page, so that one picture serves
light, dark and print; nothing is fetched from anywhere. Static SVG instead of a plotting library: the page must open on
any machine without a network, and the report must run where only Python is installed.
"""

import html
import math

WIDTH, HEIGHT = 440, 260  # of the viewBox: readable on a phone, where it is shown at its full width
LEFT, RIGHT, TOP, BOTTOM = 52, 20, 14, 42


def escape(text):
    return html.escape(str(text), quote=True)


def short(value):
    """A number for a label: three figures or whole, without an exponent where that reads well."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 0.001:
        return f"{value:.3g}"
    return f"{value:.1e}"


def bars(rows, unit, limit=None):
    """Horizontal bars as an HTML table; rows: (name, value or None, note). limit: drawn as a line."""
    top = max([value for _, value, _ in rows if value] + [limit or 0, 1e-300])
    lines = []
    for name, value, note in rows:
        width = 100 * (value or 0) / top
        mark = f'<i style="left:{100 * limit / top:.2f}%"></i>' if limit else ""
        lines.append(f'<tr><th scope="row">{escape(name)}</th><td class="bar"><div><b style="width:{width:.2f}%"></b>{mark}'
                     f'</div></td><td class="value">{short(value)} {escape(unit)}{escape(note)}</td></tr>')
    return '<table class="bars">' + "".join(lines) + "</table>"


def decades(low, high):
    """Powers of ten within a range, for a logarithmic axis."""
    return [10.0 ** e for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


def steps(high):
    """Round numbers from 0 to high, four or five of them."""
    raw = high / 4
    power = 10 ** math.floor(math.log10(raw))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= raw)
    return [step * i for i in range(int(high / step) + 2) if step * i <= high * 1.0001]


class Axes:
    """A plot's frame: x logarithmic, y linear or logarithmic; turns values into places."""

    def __init__(self, x_range, y_range, x_label, y_label, x_ticks, y_ticks, y_log=False):
        self.x_range, self.y_range, self.y_log = x_range, y_range, y_log
        self.parts = []
        for value in x_ticks:
            self.parts.append(f'<text class="tick" text-anchor="middle" x="{self.x(value):.1f}" y="{HEIGHT - BOTTOM + 16}">'
                              f"{short(value)}</text>")
        for value in y_ticks:
            y = self.y(value)
            self.parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
                              f'<text class="tick" text-anchor="end" x="{LEFT - 6}" y="{y + 4:.1f}">{short(value)}</text>')
        self.parts.append(f'<text class="label" text-anchor="middle" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}">'
                          f"{escape(x_label)}</text>")
        self.parts.append(f'<text class="label" x="4" y="11">{escape(y_label)}</text>')

    def x(self, value):
        low, high = map(math.log, self.x_range)
        part = (math.log(value) - low) / (high - low) if high > low else 0.5
        return LEFT + part * (WIDTH - LEFT - RIGHT)

    def y(self, value):
        low, high = self.y_range
        if self.y_log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        part = (value - low) / (high - low) if high > low else 0.5
        return HEIGHT - BOTTOM - part * (HEIGHT - TOP - 12 - BOTTOM)

    def line(self, points, css):
        path = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        self.parts.append(f'<polyline class="{css}" points="{path}"/>')

    def dots(self, points, labels=None):
        for i, (x, y) in enumerate(points):
            title = f"<title>{escape(labels[i])}</title>" if labels else ""
            self.parts.append(f'<circle class="dot" cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="3.5">{title}</circle>')

    def text(self, x, y, text, anchor="start", css="note"):
        self.parts.append(f'<text class="{css}" text-anchor="{anchor}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>')

    def svg(self, title):
        return (f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
                f'{"".join(self.parts)}</svg>')


def lines(points, title, x_label, y_label, limit=None):
    """One curve over a logarithmic x; points: (x, y). limit: a dashed line with its value."""
    xs, ys = [x for x, _ in points], [y for _, y in points]
    top = 1.08 * max(ys + [limit or 0])
    ticks = xs if len(xs) <= 9 else xs[::math.ceil(len(xs) / 8)]
    axes = Axes((min(xs), max(xs)), (0, top), x_label, y_label, ticks, steps(top))
    if limit:
        axes.line([(min(xs), limit), (max(xs), limit)], "limit")
        axes.text(WIDTH - RIGHT, axes.y(limit) - 4, f"limit {short(limit)}", "end")
    axes.line(points, "curve")
    axes.dots(points, [f"{short(x)}: {short(y)} {y_label}" for x, y in points])
    return axes.svg(title)


def roofline(points, title, memory_gbs, compute_tflops):
    """Kernels between memory and arithmetic; points: (name, flop a byte, TFLOP/s)."""
    xs = [x for _, x, _ in points]
    ridge = compute_tflops * 1000 / memory_gbs
    x_range = (min(xs + [ridge]) / 2, max(xs + [ridge]) * 3)
    y_range = (min(y for _, _, y in points) / 2, compute_tflops * 2)
    axes = Axes(x_range, y_range, "flop a byte of global memory", "TFLOP/s",
                [x for x in (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128) if x_range[0] <= x <= x_range[1]],
                [y for y in decades(*y_range) if y_range[0] <= y <= y_range[1]], y_log=True)
    start = max(x_range[0], y_range[0] * 1000 / memory_gbs)
    axes.line([(start, start * memory_gbs / 1000), (ridge, compute_tflops), (x_range[1], compute_tflops)], "limit")
    axes.text(WIDTH - RIGHT, axes.y(compute_tflops) - 4, f"fp32 limit {short(compute_tflops)}", "end")
    axes.dots([(x, y) for _, x, y in points], [f"{name}: {short(y)} TFLOP/s" for name, _, y in points])
    for name, x, y in points:
        axes.text(axes.x(x) + 6, axes.y(y) + 4, name.split()[0])
    return axes.svg(title)


KINDS = {"copy in": "k0", "kernel": "k1", "copy out": "k2"}


def timeline(events, title):
    """Chrome trace events of one process: a row a thread, a box an operation."""
    names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    spans = [e for e in events if e["ph"] == "X"]
    total = max(e["ts"] + e["dur"] for e in spans)
    rows = sorted({e["tid"] for e in spans})
    height, left = 22 * len(rows) + 30, 66
    scale = (WIDTH - left - 4) / total
    parts = []
    for row, tid in enumerate(rows):
        y = 4 + 22 * row
        parts.append(f'<text class="tick" x="2" y="{y + 13}">{escape(names.get(tid, tid))}</text>')
        for e in (e for e in spans if e["tid"] == tid):
            parts.append(f'<rect class="{KINDS.get(e["name"], "k1")}" x="{left + e["ts"] * scale:.2f}" y="{y}" '
                         f'width="{max(e["dur"] * scale, 0.3):.2f}" height="18"><title>{escape(e["name"])}: {e["dur"] / 1e3:.3f} ms'
                         "</title></rect>")
    for part in (0, 0.5, 1):
        parts.append(f'<text class="tick" text-anchor="{("start", "middle", "end")[int(part * 2)]}" '
                     f'x="{left + part * (WIDTH - left - 4):.0f}" y="{height - 8}">{total * part / 1e3:.2f} ms</text>')
    return (f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>')
