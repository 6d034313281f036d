"""Addresses below /account/."""

from django.urls import path

from scooter_site.accounts import views

urlpatterns = [
    path("", views.account, name="account"),
    path("log-in/", views.LogIn.as_view(), name="log-in"),
    path("log-out/", views.LogOut.as_view(), name="log-out"),
    path("sign-up/", views.sign_up, name="sign-up"),
    path("password/", views.PasswordChange.as_view(), name="change-password"),
    path("terms/", views.accept_terms, name="accept-terms"),
    path("tokens/", views.create_token, name="create-token"),
    path("tokens/<int:pk>/revoke/", views.revoke_token, name="revoke-token"),
]
