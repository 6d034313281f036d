from rest_framework import viewsets


class ImageViewSet(viewsets.ViewSet):
    pass


class AttackViewSet(viewsets.ViewSet):
    pass


class ImageClassViewSet(viewsets.ViewSet):
    pass


class TargetModelViewSet(viewsets.ViewSet):
    pass
