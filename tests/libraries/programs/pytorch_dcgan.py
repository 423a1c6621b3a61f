"""PyTorch's example: a generator and a discriminator of pictures, transposed convolutions, batch
norm, Adam.
modes: cpu, cuda
"""

import json

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.backends.cudnn.benchmark = True
cuda = torch.cuda.is_available()
device = torch.device("cuda:0" if cuda else "cpu")
nz, ngf, ndf, nc, batch = 8, 8, 8, 3, 8


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        torch.nn.init.normal_(m.weight, 0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        torch.nn.init.normal_(m.weight, 1.0, 0.02)
        torch.nn.init.zeros_(m.bias)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 2, 4, 1, 0, bias=False),
            nn.BatchNorm2d(ngf * 2),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, ngf, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ngf),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf, nc, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(nc, ndf, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ndf * 2),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf * 2, 1, 4, 1, 0, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, input):
        return self.main(input).view(-1, 1).squeeze(1)


netG, netD = Generator(), Discriminator()
netG.apply(weights_init)
netD.apply(weights_init)
netG.to(device)
netD.to(device)

rng = np.random.default_rng(0)
pictures = torch.from_numpy(np.tanh(rng.normal(size=(32, nc, 16, 16)).cumsum(-1) / 4).astype(np.float32))
noises = torch.from_numpy(rng.normal(size=(4, batch, nz, 1, 1)).astype(np.float32))
dataloader = DataLoader(TensorDataset(pictures), batch_size=batch, num_workers=2, pin_memory=cuda)

criterion = nn.BCELoss()
optimizerD = optim.Adam(netD.parameters(), lr=0.0002, betas=(0.5, 0.999))
optimizerG = optim.Adam(netG.parameters(), lr=0.0002, betas=(0.5, 0.999))
numbers = []
for i, (data,) in enumerate(dataloader):
    netD.zero_grad()
    real = data.to(device, non_blocking=True)
    label = torch.full((batch,), 1.0, dtype=real.dtype, device=device)
    output = netD(real)
    errD_real = criterion(output, label)
    errD_real.backward()

    fake = netG(noises[i].to(device))
    label.fill_(0)
    errD_fake = criterion(netD(fake.detach()), label)
    errD_fake.backward()
    optimizerD.step()

    netG.zero_grad()
    label.fill_(1)
    errG = criterion(netD(fake), label)
    errG.backward()
    optimizerG.step()
    numbers += [errD_real.item(), errD_fake.item(), errG.item(), fake.detach().cpu().abs().mean().item()]
torch.save(netG.state_dict(), "netG_epoch_0.pth")
print(json.dumps({"device": str(fake.device), "numbers": numbers, "tolerance": 1e-3}))
