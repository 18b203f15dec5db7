"""Files of the demo: a model and a table, to try the other commands on."""

from pathlib import Path

from feta.datasets.dataset import Dataset
from feta.io.model_file import save_model
from feta.model import Model

MODEL = "model.feta"
PEOPLE = "people.csv"
ANONYMOUS = "anonymous.csv"  # without the sensitive columns and the label
LABEL = "credit"


def write_demo_files(folder: Path, model: Model, dataset: Dataset) -> None:
    """Write the model, everybody with their labels, and the same table to decide fairly on."""
    folder.mkdir(parents=True, exist_ok=True)
    save_model(model, folder / MODEL)
    names = (dataset.unfavorable, dataset.favorable)
    labels = [names[int(label)] for label in dataset.labels]
    dataset.frame.assign(**{LABEL: labels}).to_csv(folder / PEOPLE, index=False)
    sensitive = [attribute.name for attribute in dataset.space.sensitive]
    dataset.frame.drop(columns=sensitive).to_csv(folder / ANONYMOUS, index=False)
