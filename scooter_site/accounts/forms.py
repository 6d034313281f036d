"""Forms of the account pages."""

from django import forms
from django.contrib.auth.forms import UserCreationForm
from django.contrib.auth.models import User

from imagedb import terms
from scooter_site.accounts.models import ApiToken


class SignUpForm(UserCreationForm):
    """A new account; the e-mail address is for administrators to reach its owner."""

    email = forms.EmailField(label="E-mail address", max_length=254)

    class Meta:
        model = User
        fields = ("username", "email")

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)
        self.fields["username"].widget.attrs["autocomplete"] = "username"
        self.fields["email"].widget.attrs["autocomplete"] = "email"


class TermsForm(forms.Form):
    """The terms, as they were when the page was shown."""

    version = forms.CharField(widget=forms.HiddenInput)
    accept = forms.BooleanField(
        label="I have read these terms and keep them.", error_messages={"required": "Tick the box to accept the terms."}
    )

    def clean_version(self) -> str:
        if self.cleaned_data["version"] != terms.CURRENT_VERSION:
            raise forms.ValidationError("The terms have changed since you opened this page. Read them once more.")
        return self.cleaned_data["version"]


class TokenForm(forms.ModelForm):
    """A name for a new token."""

    class Meta:
        model = ApiToken
        fields = ("name",)
        labels = {"name": "Name of the new token"}
