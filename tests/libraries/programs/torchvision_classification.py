"""ResNet-18 and MobileNet V3 with transforms.v2, trained a few steps in channels_last, then
evaluated.
modes: cpu, cuda
"""

import json

import numpy as np
import torch
import torchvision
from PIL import Image
from torchvision.transforms import v2

device = "cuda" if torch.cuda.is_available() else "cpu"
transform = v2.Compose(
    [
        v2.Resize(72),
        v2.CenterCrop(64),
        v2.ToImage(),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
    ]
)
rng = np.random.default_rng(0)
pictures = [Image.fromarray(rng.integers(0, 255, (80, 76, 3), dtype=np.uint8)) for _ in range(4)]
images = torch.stack([transform(picture) for picture in pictures]).to(device)
on_device = v2.functional.resize(images, [24, 24])
numbers = [v2.functional.horizontal_flip(on_device).mean().item(), v2.functional.gaussian_blur(images, 3).std().item()]
labels = torch.arange(4, device=device)
for build in (torchvision.models.resnet18, torchvision.models.mobilenet_v3_small):
    torch.manual_seed(0)
    model = build(num_classes=4)
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    model = model.to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    for _ in range(2):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images.to(memory_format=torch.channels_last)), labels)
        loss.backward()
        optimizer.step()
        numbers.append(loss.item())
    model.eval()
    with torch.no_grad():
        numbers.append(torch.nn.functional.cross_entropy(model(images), labels).item())
print(json.dumps({"device": str(loss.device), "numbers": numbers, "tolerance": 5e-3}))
