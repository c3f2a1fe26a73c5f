"""What `__getattr__` of `__init__.py` finds, for type checkers and editors."""

from fedtables.benchmarks.commands.regeneration import reproduce as reproduce
from fedtables.federation.own import OwnData as OwnData
from fedtables.federation.own import federation_of as federation_of
from fedtables.federation.own import partition as partition
from fedtables.federation.parts import Plans as Plans
from fedtables.federation.parts import Run as Run
from fedtables.federation.seeds import Seeds as Seeds
from fedtables.federation.training.plan import TrainingPlan as TrainingPlan
from fedtables.privacy.plan import PrivacyPlan as PrivacyPlan
