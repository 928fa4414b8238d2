"""Quotients that may be undefined."""


def ratio(part: float, whole: float) -> float | None:
    """part / whole, None when there is nothing to divide by."""
    return part / whole if whole else None
