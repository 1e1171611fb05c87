"""Bar charts by matplotlib: what a command costs, as multiples of a bare start."""
import io

OURS, OTHERS, BARE = "#006ba4", "#ff800e", "#595959"
CUT = 40  # bars longer than this are cut, and their numbers say so


def draw_group(axes, rows, scale):
    """`rows`: (label, kind, p50, p90, goal or None)."""
    for y, (_, kind, p50, p90, goal) in enumerate(rows):
        colour = {"bare": BARE, "other": OTHERS}.get(kind, OURS)
        axes.barh(y, min(p90, scale), height=0.3, color=colour, alpha=0.4)
        axes.barh(y, min(p50, scale), height=0.7, color=colour)
        text = f"{p50:.2f}" + (" (cut)" if p50 > scale else "") + (f", goal {goal:.2f}" if goal else "")
        axes.text(min(max(p50, p90), scale) + scale * 0.01, y, text, va="center", fontsize=8)
        if goal:
            axes.plot([goal, goal], [y - 0.45, y + 0.45], color="black", linewidth=2)
    axes.set_yticks(range(len(rows)), [row[0] for row in rows], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(0, scale * 1.25)
    axes.axvline(1, color=BARE, linewidth=0.8)
    axes.tick_params(axis="x", labelsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def draw(title, columns):
    """PNG. `columns`: (heading, {subject: rows}), for each condition that was measured."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    subjects = list(dict.fromkeys(subject for _, groups in columns for subject in groups))
    tallest = [max(len(groups.get(subject, ())) for _, groups in columns) for subject in subjects]
    figure, grid = pyplot.subplots(len(subjects), len(columns), squeeze=False,
                                   figsize=(7 * len(columns), 0.32 * sum(tallest) + 0.9 * len(subjects) + 0.8),
                                   gridspec_kw={"height_ratios": tallest}, layout="constrained")
    figure.suptitle(title)
    for x, (heading, groups) in enumerate(columns):
        for y, subject in enumerate(subjects):
            axes = grid[y][x]
            if subject not in groups:
                axes.axis("off")
                continue
            axes.set_title(f"{subject}: {heading}", fontsize=9, loc="left")
            draw_group(axes, groups[subject], min(CUT, max(1.2, *(row[2] for row in groups[subject]))))
    figure.supxlabel("bar: p50; thin bar: p90; mark: goal; line at 1: no sandbox. Smaller is better.", fontsize=8)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    pyplot.close(figure)
    return buffer.getvalue()
