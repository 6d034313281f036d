"""Words that depend on a number."""


def counted(count: int, one: str, many: str = "") -> str:
    """For example "1 image" or "1,200 images"; ``many`` where that is not ``one`` with an s."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def there_are(count: int, one: str) -> str:
    """For example "There is 1 place" or "There are 690 places"."""
    return f"There {'is' if count == 1 else 'are'} {counted(count, one)}"
