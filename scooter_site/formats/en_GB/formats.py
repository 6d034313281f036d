"""The site's English. Django's own writes times as "6:14 p.m.", without saying where."""

TIME_FORMAT = r"H:i \U\T\C"
DATETIME_FORMAT = r"j F Y, H:i \U\T\C"
SHORT_DATETIME_FORMAT = r"d/m/Y H:i \U\T\C"
