"""create_model: a tiny ViT, a ResNet and a ConvNeXt, timm's loss, optimizer, EMA and mixup, a few
training steps.
modes: cpu, cuda
"""

import json

import numpy as np
import timm
import torch
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.models.convnext import ConvNeXt
from timm.models.resnet import BasicBlock, ResNet
from timm.optim import create_optimizer_v2
from timm.utils import ModelEmaV3

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
rng = np.random.default_rng(0)
images = torch.from_numpy(rng.normal(size=(4, 3, 32, 32)).astype(np.float32)).to(device)
labels = torch.tensor([0, 1, 2, 3]).to(device)


def vit():
    return timm.create_model(
        "vit_tiny_patch16_224", img_size=32, patch_size=8, depth=2, embed_dim=48, num_heads=3, num_classes=4
    )


def resnet():
    return ResNet(BasicBlock, (1, 1, 1, 1), num_classes=4, channels=(8, 16, 32, 64), stem_width=8)


def convnext():
    return ConvNeXt(depths=(1, 1, 1, 1), dims=(8, 16, 32, 64), num_classes=4)


numbers = []
for build in (vit, resnet, convnext):
    torch.manual_seed(0)
    np.random.seed(0)
    model = build().to(device)
    ema = ModelEmaV3(model, decay=0.9)
    optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
    mixup = Mixup(mixup_alpha=0.8, label_smoothing=0.1, num_classes=4)
    criterion = SoftTargetCrossEntropy()
    for _ in range(2):
        mixed, targets = mixup(images.clone(), labels)
        loss = criterion(model(mixed), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update(model)
        numbers.append(loss.item())
    ema.module.eval()
    with torch.no_grad():
        numbers += ema.module(images).softmax(1).flatten().tolist()
print(json.dumps({"device": str(loss.device), "numbers": numbers, "tolerance": 2e-3}))
