"""Accounts and system tables in the same dress as the rest of the admin."""

from typing import Any

from axes.admin import AccessAttemptAdmin as BaseAccessAttemptAdmin
from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as BaseGroupAdmin
from django.contrib.auth.admin import UserAdmin as BaseUserAdmin
from django.contrib.auth.models import Group, User
from django_celery_beat.admin import ClockedScheduleAdmin as BaseClockedScheduleAdmin
from django_celery_beat.admin import CrontabScheduleAdmin as BaseCrontabScheduleAdmin
from django_celery_beat.admin import PeriodicTaskAdmin as BasePeriodicTaskAdmin
from django_celery_beat.admin import PeriodicTaskForm as BasePeriodicTaskForm
from django_celery_beat.admin import TaskSelectWidget
from django_celery_beat.models import ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask, SolarSchedule
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from scooter_site.common.admin_tools import ReadOnlyAdmin

admin.site.index_title = "Overview"

for model in (
    User,
    Group,
    AccessAttempt,
    AccessLog,
    AccessFailureLog,
    PeriodicTask,
    IntervalSchedule,
    CrontabSchedule,
    SolarSchedule,
    ClockedSchedule,
):
    admin.site.unregister(model)


@admin.register(User)
class UserAdmin(BaseUserAdmin, ModelAdmin):
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm


@admin.register(Group)
class GroupAdmin(BaseGroupAdmin, ModelAdmin):
    pass


@admin.register(AccessAttempt)
class AccessAttemptAdmin(BaseAccessAttemptAdmin, ModelAdmin):
    """Failed log-ins. Deleting a row unlocks the account and address in it."""

    list_display = ("username", "ip_address", "attempt_time", "failures_since_start", "status")
    list_filter = ("attempt_time",)
    date_hierarchy = None
    fieldsets = ((None, {"fields": ("username", "ip_address", "attempt_time", "failures_since_start", "user_agent")}),)
    actions = ("delete_selected",)


@admin.register(AccessLog)
class AccessLogAdmin(ReadOnlyAdmin, ModelAdmin):
    list_display = ("username", "ip_address", "attempt_time", "logout_time")
    search_fields = ("username", "ip_address")


class PeriodicTaskSelectWidget(UnfoldAdminSelectWidget, TaskSelectWidget):
    pass


class PeriodicTaskForm(BasePeriodicTaskForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["task"].widget = UnfoldAdminTextInputWidget()
        self.fields["regtask"].widget = PeriodicTaskSelectWidget()


@admin.register(PeriodicTask)
class PeriodicTaskAdmin(BasePeriodicTaskAdmin, ModelAdmin):
    form = PeriodicTaskForm
    list_display = ("name", "enabled", "scheduler", "last_run_at", "total_run_count")
    list_filter = ("enabled",)
    date_hierarchy = None


@admin.register(IntervalSchedule)
class IntervalScheduleAdmin(ModelAdmin):
    pass


@admin.register(CrontabSchedule)
class CrontabScheduleAdmin(BaseCrontabScheduleAdmin, ModelAdmin):
    inlines = ()


@admin.register(SolarSchedule)
class SolarScheduleAdmin(ModelAdmin):
    pass


@admin.register(ClockedSchedule)
class ClockedScheduleAdmin(BaseClockedScheduleAdmin, ModelAdmin):
    inlines = ()
