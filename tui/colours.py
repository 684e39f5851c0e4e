"""The colours of each theme. Who changes one is told by tests/tui/test_themes.py whether it can still be read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Colours:
    """The colours of one theme. heat: ten levels from cold to hot, as (background, text)."""

    background: str
    surface: str
    raised: str
    cursor: str
    text: str
    dim: str
    faint: str  # rules and empty tracks: nothing that must be read
    area: str  # charts and sparklines: there to be read, not to shout
    accent: str
    ok: str
    warn: str
    crit: str
    info: str
    ink: str  # text on a filled badge
    heat: tuple[tuple[str, str], ...]
    dark: bool = True


# Severity hues: vermilion, amber, sky blue, bluish green.
DARK = Colours(
    background="#0f1318", surface="#181b20", raised="#20242a", cursor="#1f3550",
    text="#dbe2ea", dim="#98a6b5", faint="#3a4653", area="#3f7fae", accent="#7cc4ff",
    ok="#4cc2a3", warn="#f5b83d", crit="#ff7a66", info="#7aa2f7", ink="#0f1318",
    heat=(
        ("#16202b", "#7d8fa3"), ("#152a3e", "#8ea3b8"), ("#143750", "#a9bfd4"), ("#124664", "#c3d8e8"),
        ("#115778", "#dcecf6"), ("#156a8c", "#f2fafd"), ("#2a7d9c", "#ffffff"), ("#56a0b8", "#06131a"),
        ("#92c7d6", "#06131a"), ("#dff4f8", "#06131a"),
    ),
)  # fmt: skip
LIGHT = Colours(
    background="#f7f6f2", surface="#efede7", raised="#e6e3da", cursor="#d6e5f6",
    text="#1d242c", dim="#4f5a66", faint="#b9b6ab", area="#4a80ad", accent="#0b5cad",
    ok="#08674f", warn="#7d5100", crit="#b3261e", info="#3451b2", ink="#ffffff",
    heat=(
        ("#eceae3", "#55606c"), ("#d9e3e8", "#3c4854"), ("#cbdde6", "#2d3945"), ("#b0cfe0", "#1d2833"),
        ("#8fbdd7", "#101820"), ("#6aa7cb", "#06101a"), ("#5599c2", "#06101a"), ("#2a729f", "#ffffff"),
        ("#1b5c8a", "#ffffff"), ("#0c4069", "#ffffff"),
    ), dark=False,
)  # fmt: skip
# For bright rooms, projectors and weak eyes: black and near white, no text weaker than seven to one.
HIGH_CONTRAST = Colours(
    background="#000000", surface="#000000", raised="#1c1c1c", cursor="#001f3d",
    text="#ffffff", dim="#d6d6d6", faint="#7a7a7a", area="#5cb8ff", accent="#8fd3ff",
    ok="#5ff0b4", warn="#ffd24a", crit="#ff8c75", info="#b9c8ff", ink="#000000",
    heat=(
        ("#000000", "#d6d6d6"), ("#0a1c2c", "#dfe9f2"), ("#0b2a44", "#ffffff"), ("#0b3a5e", "#ffffff"),
        ("#0b4a73", "#ffffff"), ("#4fa6cc", "#000000"), ("#6fbcdc", "#000000"), ("#96d2ea", "#000000"),
        ("#c2e8f5", "#000000"), ("#ffffff", "#000000"),
    ),
)  # fmt: skip
# Severities differ in lightness as well as in hue, along blue to yellow, which red-green blindness leaves alone.
COLOUR_BLIND = Colours(
    background="#10131a", surface="#191c23", raised="#21252d", cursor="#15304d",
    text="#e4e7ec", dim="#96a0a0", faint="#3c4656", area="#4a86c5", accent="#a5cdf5",
    ok="#42a0fa", warn="#fbf07a", crit="#f4723a", info="#e8c0f4", ink="#10131a",
    heat=(
        ("#1b1f2b", "#8d96a8"), ("#1c2640", "#9aa5bb"), ("#1d2f57", "#b4c0d8"), ("#223a6b", "#ccd6ea"),
        ("#3a4a78", "#e6ebf6"), ("#56597a", "#ffffff"), ("#716b78", "#ffffff"), ("#a39a7a", "#0c0d10"),
        ("#cdbd6a", "#0c0d10"), ("#fbe983", "#0c0d10"),
    ),
)  # fmt: skip

COLOURS: dict[str, Colours] = {
    "dark": DARK,
    "light": LIGHT,
    "high-contrast": HIGH_CONTRAST,
    "colour-blind": COLOUR_BLIND,
}
