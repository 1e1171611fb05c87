"""A bar chart as PNG, by nothing but zlib: text in one bitmap font, rectangles, lines."""
import base64
import struct
import zlib

# X11's 10x20, in the public domain: the characters 32 to 126, 20 rows of 10 bits each.
FONT = zlib.decompress(base64.b64decode("""
eNqNVs1q20AQllCQL0pyXRHX6iNIGEICob71JXqREciXuE0pFKeEZiGg9uAHUHBoX6GlEHooRSbgXEzPzk2hoF56MPSSFqN2drXS/kgO3YNs77czO/PNNyNr
2j3LtQwtYQ8NHhUw71rTh40mm2f+4u+OOf2Y78JXwVVvJ5x+ONxOFrubk2DJXWn7k3D509Rx4u68+XT4rdo/Ig6WaMucToL4evRLjqrpdssEwEfgy4cjvlUB
CQKA7iPLgJtEI8Odd5zbdN6tuYOknZRmvnale21lx0nvI9TA6R7/BfG4Fs0ckch5gh3ryov6cWhHwHPKuXLb22ZSFWWaV8Coi0KSX5L64EtXAcPArtmPA3dU
ARuGniwPu2jm5ay8LKacEvi0TfiSLMDVYwLM7Ehypefr8iCXQwqtM0+2YEB/fLsw9bciUKwtAzN21wJtIQ+cQNKk3jp2N6TzjIhTLG4CFVQQYEQEg5WoiD9F
7QQ4/jqchDdfQmSgk1qhBr+LalX3LkMgdhw6ES2jdye5IjKkWhRJvAsoJXHx4BasHr4TFWb5OgCrd9gZLdTeq8qCuX+f2Uq4udDnkq56fD9AV/6R6GrmxaFD
VIVmgqsyN1MNN+pf/NjPCYmX8uXR84vBeQbA8bsgzjhQqqSgpImr69uGzJnF8Py7e1JCgoUcLuPKbYEodFnUEiVcDHpVIzUqsofIYExHnQYLmvmLi0zMvD++
cuGwno661qwBqF1OWw2arPgQ+nzlSvGuxBnOxmExA7mFnN9KFPUMaf+xTstOJ513zznH8lFOyPmjqITNkoH3uWZBm0RstUJPD8ZM1C8VC4jZzmWLAziJ/deV
GhWLR3HmjYPtSFuR0Fa1qASJksENY+2g3h8keaS1Kr2DRxoBcxXY0TQ9sWEKVMeX61qtWE+c7OaSSkUBGqMqM1fGq2QB7MpNonESaZgceLYVsNgUVz0Uaisd
FzSJFSnZjQ8Ui7I/aoUikc47LSyMV24BmQ/u5iowhlegRV4ia++QX1RaD7PZngssUcY7LL9O418cqdXSYk9Pi0Lx13o2PE9qGv8Hbp+qxA==
"""))
GLYPH_WIDTH, GLYPH_HEIGHT = 10, 20
FONT_BITS = int.from_bytes(FONT, "big")
WHITE, BLACK, GREY, PALE = (255, 255, 255), (34, 34, 34), (120, 120, 120), (225, 225, 225)
OURS, OURS_PALE, BARE, OTHERS, OTHERS_PALE = (0, 107, 164), (162, 200, 236), (89, 89, 89), (255, 128, 14), (255, 200, 150)


class Picture:
    def __init__(self, width, height):
        self.width, self.height = width, height
        self.rows = [bytearray(bytes(WHITE) * width) for _ in range(height)]

    def box(self, x, y, width, height, colour):
        x, width = max(0, int(x)), max(0, min(int(width), self.width - int(x)))
        for row in self.rows[int(y):int(y) + int(height)]:
            row[3 * x:3 * (x + width)] = bytes(colour) * width

    def text(self, x, y, text, colour=BLACK, bold=False):
        for offset in (0, 1) if bold else (0,):
            for i, character in enumerate(text):
                self.glyph(int(x) + i * GLYPH_WIDTH + offset, int(y), character, colour)

    def glyph(self, x, y, character, colour):
        index = ord(character) - 32 if " " <= character <= "~" else ord("?") - 32
        size = GLYPH_WIDTH * GLYPH_HEIGHT
        bits = FONT_BITS >> (len(FONT) * 8 - (index + 1) * size) & ((1 << size) - 1)
        for i in range(size):
            if bits >> (size - 1 - i) & 1:
                self.box(x + i % GLYPH_WIDTH, y + i // GLYPH_WIDTH, 1, 1, colour)

    def png(self):
        def chunk(kind, data):
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        header = struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)
        pixels = zlib.compress(b"".join(b"\0" + bytes(row) for row in self.rows), 9)
        return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


LABEL_WIDTH, BAR_WIDTH, LINE, MARGIN = 330, 560, 30, 24


def scale(rows):
    """The longest bar that is drawn in full: a giant or two would make everything else a dot."""
    longest = 1.2
    for value in sorted(row[2] for row in rows):
        if value > 60 and value > 4 * longest:
            break
        longest = max(longest, value)
    return longest * 1.08


def draw(title, subtitle, groups):
    """`groups`: (heading, [(label, kind, p50, p90, goal)]), numbers as multiples of a bare start. A bar that is longer than the
    picture is wide is cut, and its number says so."""
    height = 2 * MARGIN + 70 + sum(LINE * (len(rows) + 1) + 30 for _, rows in groups) + 30
    picture = Picture(2 * MARGIN + LABEL_WIDTH + BAR_WIDTH + 290, height)
    picture.text(MARGIN, MARGIN, title, bold=True)
    picture.text(MARGIN, MARGIN + 26, subtitle, GREY)
    y, left = MARGIN + 70, MARGIN + LABEL_WIDTH
    for heading, rows in groups:
        longest = scale(rows)

        def at(value):
            return left + min(value, longest) / longest * BAR_WIDTH
        picture.text(MARGIN, y, heading, bold=True)
        y += LINE
        for step in {0, 1, *range(0, int(longest) + 1, max(1, round(longest / 10)))}:
            picture.box(at(step), y, 1, LINE * len(rows), BARE if step == 1 else PALE)
        for label, kind, p50, p90, goal in rows:
            colour, pale = {"bare": (BARE, GREY), "other": (OTHERS, OTHERS_PALE)}.get(kind, (OURS, OURS_PALE))
            picture.text(left - 12 - GLYPH_WIDTH * len(label), y + 4, label)
            picture.box(left, y + 10, at(p90) - left, 8, pale)
            picture.box(left, y + 5, at(p50) - left, 18, colour)
            words = f"{p50:.2f}" if p50 < 20 else f"{p50:.0f}"
            words += " >>" if p50 > longest else ""
            if goal:
                picture.box(at(goal), y + 1, 3, LINE - 4, BLACK)
                words += f"  goal {goal:.2f}: " + ("met" if p50 <= goal else "NOT MET")
            x = max(at(p50), at(p90), at(goal or 0)) + 10
            picture.box(x - 4, y + 2, GLYPH_WIDTH * len(words) + 8, LINE - 4, WHITE)
            picture.text(x, y + 4, words)
            y += LINE
        y += 30
    picture.text(MARGIN, y, "bar: p50   thin: to p90   mark: the goal   line at 1: no sandbox at all", GREY)
    return picture.png()
