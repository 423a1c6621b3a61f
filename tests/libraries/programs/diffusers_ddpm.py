"""A UNet2D: training steps with DDPM's noise, then DDPMPipeline and DDIMPipeline moved with
.to("cuda").
modes: cpu, cuda
"""

import json

import numpy as np
import torch
from diffusers import DDIMPipeline, DDIMScheduler, DDPMPipeline, DDPMScheduler, UNet2DModel
from diffusers.training_utils import EMAModel

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
model = UNet2DModel(
    sample_size=8,
    in_channels=3,
    out_channels=3,
    layers_per_block=1,
    block_out_channels=(16, 32),
    norm_num_groups=8,
    attention_head_dim=8,
    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
).to(device)
scheduler = DDPMScheduler(num_train_timesteps=100)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
ema = EMAModel(model.parameters())
rng = np.random.default_rng(0)
images = torch.from_numpy(rng.normal(size=(4, 3, 8, 8)).astype(np.float32)).to(device)
numbers = []
for step in range(3):
    noise = torch.from_numpy(np.random.default_rng(step).normal(size=images.shape).astype(np.float32)).to(device)
    timesteps = torch.from_numpy(np.random.default_rng(step).integers(0, 100, 4)).to(device)
    noisy = scheduler.add_noise(images, noise, timesteps)
    loss = torch.nn.functional.mse_loss(model(noisy, timesteps).sample, noise)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    ema.step(model.parameters())
    numbers.append(loss.item())
ema.copy_to(model.parameters())
model.eval()
for kind, pipeline_scheduler in ((DDPMPipeline, scheduler), (DDIMPipeline, DDIMScheduler(num_train_timesteps=100))):
    pipeline = kind(unet=model, scheduler=pipeline_scheduler).to(device)
    pipeline.set_progress_bar_config(disable=True)
    generator = torch.Generator("cpu").manual_seed(0)
    found = pipeline(batch_size=2, num_inference_steps=4, generator=generator, output_type="np").images
    numbers += found[:, :2, :2, 0].ravel().tolist()
print(json.dumps({"device": str(pipeline.device), "numbers": [float(x) for x in numbers], "tolerance": 2e-3}))
