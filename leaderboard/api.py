from rest_framework import viewsets


class EntryViewSet(viewsets.ViewSet):
    pass
