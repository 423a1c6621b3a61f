"""Trainer: a module with training, validation and test steps, a checkpoint, going on from it,
predictions.
arguments: --accelerator auto
arguments: --accelerator gpu
arguments: --accelerator gpu --precision 16-mixed
arguments: --accelerator auto --precision bf16-mixed
"""

import argparse
import json
import logging
import warnings

import lightning
import numpy as np
import torch
from lightning.pytorch.callbacks import LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
parser = argparse.ArgumentParser()
parser.add_argument("--accelerator", default="auto")
parser.add_argument("--precision", default="32-true")
args = parser.parse_args()
if not torch.accelerator.is_available():
    args.accelerator = "cpu"
mixed = "mixed" in args.precision
precision = "32-true" if args.accelerator == "cpu" and args.precision == "16-mixed" else args.precision


class Classifier(lightning.LightningModule):
    def __init__(self, width=16):
        super().__init__()
        self.save_hyperparameters()
        self.model = nn.Sequential(
            nn.Linear(8, width, bias=False), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 3)
        )
        self.losses = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.cross_entropy(self.model(x), y)
        self.log("train_loss", loss, on_step=True, on_epoch=True)
        self.losses.append(loss.detach())
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_loss", nn.functional.cross_entropy(self.model(x), y), prog_bar=True)

    def test_step(self, batch, batch_idx):
        x, y = batch
        self.log("test_accuracy", (self.model(x).argmax(1) == y).float().mean())

    def predict_step(self, batch, batch_idx):
        return self.model(batch[0]).softmax(1)

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=1e-2)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)}


lightning.seed_everything(0, workers=True, verbose=False)
x = np.random.default_rng(0).normal(size=(96, 8)).astype(np.float32)
data = TensorDataset(torch.from_numpy(x), torch.from_numpy(x[:, :3].argmax(1)))
train, rest = DataLoader(data, batch_size=16, num_workers=1), DataLoader(data, batch_size=48)
options = {
    "accelerator": args.accelerator,
    "devices": 1,
    "precision": precision,
    "logger": CSVLogger("logs"),
    "enable_progress_bar": False,
    "enable_model_summary": True,
    "log_every_n_steps": 1,
    "gradient_clip_val": 1.0,
}
model = Classifier()
kept = ModelCheckpoint("checkpoints", monitor="val_loss", save_last=True)
trainer = lightning.Trainer(max_epochs=2, callbacks=[kept, LearningRateMonitor()], **options)
trainer.fit(model, train, rest)
numbers = [loss.item() for loss in model.losses]
numbers += [trainer.callback_metrics[name].item() for name in ("train_loss_epoch", "val_loss")]
again = Classifier()
trainer = lightning.Trainer(max_epochs=3, enable_checkpointing=False, **options)
trainer.fit(again, train, rest, ckpt_path="checkpoints/last.ckpt", weights_only=False)
numbers += [loss.item() for loss in again.losses]
trainer.test(again, rest, verbose=False)
device = str(trainer.strategy.root_device)
numbers += trainer.predict(again, rest)[0][:4].float().flatten().tolist()
loaded = Classifier.load_from_checkpoint("checkpoints/last.ckpt", weights_only=False)
assert loaded.hparams.width == 16
print(json.dumps({"device": device, "numbers": numbers, "tolerance": 3e-2 if mixed else 1e-3}))
