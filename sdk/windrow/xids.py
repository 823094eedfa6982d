"""A paragraph for each XID, the errors of NVIDIA's driver; `make conditions` writes it. Pure."""

from typing import Final

XIDS: Final[dict[str, str]] = {
    "xid-8": (
        "XID 8: the GPU did not finish a program's commands in time. Mostly caused by the driver. Start the "
        "work again. If it comes back with other programs, reset the GPU and ask the card's maker."
    ),
    "xid-11": (
        "XID 11: the stream of commands to the GPU was not valid. Mostly caused by the driver. Start the work "
        "again. If it comes back with other programs, reset the GPU and ask the card's maker."
    ),
    "xid-13": (
        "XID 13: a program's kernel failed, mostly by an address outside its arrays. Mostly caused by the "
        "program. Run the program under `compute-sanitizer` or `cuda-gdb`. The GPU itself is well."
    ),
    "xid-14": (
        "XID 14: a program asked the driver for this error as a test. Mostly caused by the program. Run the "
        "program under `compute-sanitizer` or `cuda-gdb`. The GPU itself is well."
    ),
    "xid-25": (
        "XID 25: the stream of commands to the GPU held one that is not allowed. Mostly caused by the driver. "
        "Start the work again. If it comes back with other programs, reset the GPU and ask the card's maker."
    ),
    "xid-31": (
        "XID 31: a program used an address of GPU memory that is not its own. Mostly caused by the program. Run"
        " the program under `compute-sanitizer` or `cuda-gdb`. The GPU itself is well."
    ),
    "xid-32": (
        "XID 32: commands arrived at the GPU damaged, mostly by its PCIe connection. Mostly caused by the "
        "hardware. Reboot the host. If it happens again, reseat the card and its power cables, or replace the "
        "card."
    ),
    "xid-37": (
        "XID 37: the driver's firmware got a command that it does not know. Mostly caused by the driver. Reset "
        "the GPU, and install a newer driver. If it comes back, ask the card's maker."
    ),
    "xid-38": (
        "XID 38: the driver's firmware did not answer in time. Mostly caused by the driver. Reset the GPU, and "
        "install a newer driver. If it comes back, ask the card's maker."
    ),
    "xid-39": (
        "XID 39: a copy engine failed. Mostly caused by the driver. Start the work again. If it comes back with"
        " other programs, reset the GPU and ask the card's maker."
    ),
    "xid-40": (
        "XID 40: a copy engine failed. Mostly caused by the driver. Start the work again. If it comes back with"
        " other programs, reset the GPU and ask the card's maker."
    ),
    "xid-41": (
        "XID 41: a copy engine failed. Mostly caused by the driver. Start the work again. If it comes back with"
        " other programs, reset the GPU and ask the card's maker."
    ),
    "xid-43": (
        "XID 43: a program had a fault and was stopped. Mostly caused by the program. Run the program under "
        "`compute-sanitizer` or `cuda-gdb`. The GPU itself is well."
    ),
    "xid-44": (
        "XID 44: the GPU had a fault while it changed from one program to another. Mostly caused by the driver."
        " Start the work again. If it comes back with other programs, reset the GPU and ask the card's maker."
    ),
    "xid-45": (
        "XID 45: the driver cleaned up after a program that ended or was killed. Mostly caused by the program. "
        "Run the program under `compute-sanitizer` or `cuda-gdb`. The GPU itself is well."
    ),
    "xid-46": (
        "XID 46: the GPU stopped working on its commands. Mostly caused by the hardware. Drain the host "
        "(`windrow host drain HOST`) and reset the GPU (`sudo nvidia-smi -r -i INDEX`). If it comes back, ask "
        "the card's maker."
    ),
    "xid-48": (
        "XID 48: memory error that could not be corrected. Mostly caused by the hardware. Drain the host "
        "(`windrow host drain HOST`) and reset the GPU (`sudo nvidia-smi -r -i INDEX`). If it comes back, ask "
        "the card's maker."
    ),
    "xid-54": (
        "XID 54: a power cable of the card is not connected. Mostly caused by the hardware. Switch the host off"
        " and connect the cable."
    ),
    "xid-56": (
        "XID 56: the display engine failed. Mostly caused by the driver. Reset the GPU, and install a newer "
        "driver. If it comes back, ask the card's maker."
    ),
    "xid-57": (
        "XID 57: the connection to the GPU's memory could not be set up. Mostly caused by the hardware. Drain "
        "the host (`windrow host drain HOST`) and reset the GPU (`sudo nvidia-smi -r -i INDEX`). If it comes "
        "back, ask the card's maker."
    ),
    "xid-58": (
        "XID 58: the GPU's memory was unstable. Mostly caused by the hardware. Drain the host (`windrow host "
        "drain HOST`) and reset the GPU (`sudo nvidia-smi -r -i INDEX`). If it comes back, ask the card's "
        "maker."
    ),
    "xid-60": (
        "XID 60: the security or video processor failed. Mostly caused by the driver. Start the work again. If "
        "it comes back with other programs, reset the GPU and ask the card's maker."
    ),
    "xid-61": (
        "XID 61: a controller inside the GPU stopped at a check. Mostly caused by the driver. Drain the host "
        "(`windrow host drain HOST`) and reset the GPU (`sudo nvidia-smi -r -i INDEX`). If it comes back, ask "
        "the card's maker."
    ),
    "xid-62": (
        "XID 62: a controller inside the GPU has halted. Mostly caused by the hardware. Drain the host "
        "(`windrow host drain HOST`) and reset the GPU (`sudo nvidia-smi -r -i INDEX`). If it comes back, ask "
        "the card's maker."
    ),
    "xid-63": (
        "XID 63: a bad part of memory is noted down for repair. Mostly caused by the hardware. Nothing. If it "
        "comes often, watch the card's memory: `nvidia-smi -q -d ECC,ROW_REMAPPER`."
    ),
    "xid-64": (
        "XID 64: a bad part of memory could not be noted down for repair. Mostly caused by the hardware. Drain "
        "the host (`windrow host drain HOST`) and reset the GPU (`sudo nvidia-smi -r -i INDEX`). If it comes "
        "back, ask the card's maker."
    ),
    "xid-65": (
        "XID 65: a video encoder failed. Mostly caused by the driver. Start the work again. If it comes back "
        "with other programs, reset the GPU and ask the card's maker."
    ),
    "xid-66": (
        "XID 66: the driver used a register that it may not use. Mostly caused by the driver. Reset the GPU, "
        "and install a newer driver. If it comes back, ask the card's maker."
    ),
    "xid-67": (
        "XID 67: the driver broke a rule of the GPU's firmware. Mostly caused by the driver. Reset the GPU, and"
        " install a newer driver. If it comes back, ask the card's maker."
    ),
    "xid-68": (
        "XID 68: a video decoder failed. Mostly caused by the program. Run the program under `compute-"
        "sanitizer` or `cuda-gdb`. The GPU itself is well."
    ),
    "xid-69": (
        "XID 69: the GPU got a command of the wrong kind. Mostly caused by the driver. Start the work again. If"
        " it comes back with other programs, reset the GPU and ask the card's maker."
    ),
    "xid-70": (
        "XID 70: a copy engine failed. Mostly caused by the driver. Start the work again. If it comes back with"
        " other programs, reset the GPU and ask the card's maker."
    ),
    "xid-71": (
        "XID 71: a copy engine failed. Mostly caused by the driver. Start the work again. If it comes back with"
        " other programs, reset the GPU and ask the card's maker."
    ),
    "xid-72": (
        "XID 72: a copy engine failed. Mostly caused by the driver. Start the work again. If it comes back with"
        " other programs, reset the GPU and ask the card's maker."
    ),
    "xid-74": (
        "XID 74: NVLink connection failed. Mostly caused by the hardware. `nvidia-smi nvlink -e` names the "
        "link. Reset all GPUs of the host together, or reboot it. If it comes back, look at bridges, baseboard "
        "and the GPU at the other end."
    ),
    "xid-75": (
        "XID 75: a copy engine failed. Mostly caused by the driver. Start the work again. If it comes back with"
        " other programs, reset the GPU and ask the card's maker."
    ),
    "xid-76": (
        "XID 76: a copy engine failed. Mostly caused by the driver. Start the work again. If it comes back with"
        " other programs, reset the GPU and ask the card's maker."
    ),
    "xid-77": (
        "XID 77: a copy engine failed. Mostly caused by the driver. Start the work again. If it comes back with"
        " other programs, reset the GPU and ask the card's maker."
    ),
    "xid-78": (
        "XID 78: a virtual GPU could not be started. Mostly caused by the driver. Install driver versions that "
        "fit on host and guest."
    ),
    "xid-79": (
        "XID 79: the GPU has fallen off the bus. Mostly caused by the hardware. Reboot the host. If it happens "
        "again, reseat the card and its power cables, or replace the card."
    ),
    "xid-80": (
        "XID 80: data was damaged on its way to the GPU. Mostly caused by the hardware. Reboot the host. If it "
        "happens again, reseat the card and its power cables, or replace the card."
    ),
    "xid-82": (
        "XID 82: an image decoder failed. Mostly caused by the driver. Start the work again. If it comes back "
        "with other programs, reset the GPU and ask the card's maker."
    ),
    "xid-83": (
        "XID 83: a video decoder failed. Mostly caused by the driver. Start the work again. If it comes back "
        "with other programs, reset the GPU and ask the card's maker."
    ),
    "xid-84": (
        "XID 84: a video decoder failed. Mostly caused by the driver. Start the work again. If it comes back "
        "with other programs, reset the GPU and ask the card's maker."
    ),
    "xid-85": (
        "XID 85: a copy engine failed. Mostly caused by the driver. Start the work again. If it comes back with"
        " other programs, reset the GPU and ask the card's maker."
    ),
    "xid-86": (
        "XID 86: the optical-flow engine failed. Mostly caused by the driver. Start the work again. If it comes"
        " back with other programs, reset the GPU and ask the card's maker."
    ),
    "xid-88": (
        "XID 88: a video decoder failed. Mostly caused by the driver. Start the work again. If it comes back "
        "with other programs, reset the GPU and ask the card's maker."
    ),
    "xid-89": (
        "XID 89: a video decoder failed. Mostly caused by the driver. Start the work again. If it comes back "
        "with other programs, reset the GPU and ask the card's maker."
    ),
    "xid-92": (
        "XID 92: many memory errors, all of them corrected. Mostly caused by the hardware. Nothing. If it comes"
        " often, watch the card's memory: `nvidia-smi -q -d ECC,ROW_REMAPPER`."
    ),
    "xid-93": (
        "XID 93: the card's own record may not be written any more. Mostly caused by the hardware. Ask the "
        "card's maker: the GPU works on until then, and it may happen again."
    ),
    "xid-94": (
        "XID 94: memory error that could not be corrected, contained in one program. Mostly caused by the "
        "hardware. Drain the host (`windrow host drain HOST`) and reset the GPU (`sudo nvidia-smi -r -i "
        "INDEX`). If it comes back, ask the card's maker."
    ),
    "xid-95": (
        "XID 95: memory error that could not be contained in one program. Mostly caused by the hardware. Drain "
        "the host (`windrow host drain HOST`) and reset the GPU (`sudo nvidia-smi -r -i INDEX`). If it comes "
        "back, ask the card's maker."
    ),
    "xid-106": (
        "XID 106: test message of the management bus. Mostly caused by the driver. Nothing. If it comes often, "
        "watch the card's memory: `nvidia-smi -q -d ECC,ROW_REMAPPER`."
    ),
    "xid-107": (
        "XID 107: test message of the management bus. Mostly caused by the driver. Nothing. If it comes often, "
        "watch the card's memory: `nvidia-smi -q -d ECC,ROW_REMAPPER`."
    ),
    "xid-109": (
        "XID 109: a program did not let the GPU change to another one in time. Mostly caused by the program. "
        "Run the program under `compute-sanitizer` or `cuda-gdb`. The GPU itself is well."
    ),
    "xid-110": (
        "XID 110: the GPU found a breach of its own security. Mostly caused by the hardware. Reboot the host. "
        "If it happens again, reseat the card and its power cables, or replace the card."
    ),
    "xid-119": (
        "XID 119: the GPU's system processor did not answer in time. Mostly caused by the driver. Reset the "
        "GPU, and install a newer driver. If it comes back, ask the card's maker."
    ),
    "xid-120": (
        "XID 120: the GPU's system processor failed. Mostly caused by the driver. Reset the GPU, and install a "
        "newer driver. If it comes back, ask the card's maker."
    ),
    "xid-121": (
        "XID 121: errors on the connection between CPU and GPU were corrected. Mostly caused by the hardware. "
        "Ask the card's maker: the GPU works on until then, and it may happen again."
    ),
    "xid-122": (
        "XID 122: the card's own flash memory could not be read. Mostly caused by the hardware. Ask the card's "
        "maker: the GPU works on until then, and it may happen again."
    ),
    "xid-123": (
        "XID 123: the card's own flash memory could not be written. Mostly caused by the hardware. Ask the "
        "card's maker: the GPU works on until then, and it may happen again."
    ),
    "xid-124": (
        "XID 124: the card's own flash memory could not be erased. Mostly caused by the hardware. Ask the "
        "card's maker: the GPU works on until then, and it may happen again."
    ),
    "xid-125": (
        "XID 125: the card's own record is damaged. Mostly caused by the hardware. Ask the card's maker: the "
        "GPU works on until then, and it may happen again."
    ),
    "xid-136": (
        "XID 136: NVLink connection could not be set up. Mostly caused by the hardware. `nvidia-smi nvlink -e` "
        "names the link. Reset all GPUs of the host together, or reboot it. If it comes back, look at bridges, "
        "baseboard and the GPU at the other end."
    ),
    "xid-137": (
        "XID 137: a program used an address of another GPU that is not its own. Mostly caused by the program. "
        "Run the program under `compute-sanitizer` or `cuda-gdb`. The GPU itself is well."
    ),
    "xid-140": (
        "XID 140: memory errors that could not be corrected nor noted down for repair. Mostly caused by the "
        "hardware. Drain the host (`windrow host drain HOST`) and reset the GPU (`sudo nvidia-smi -r -i "
        "INDEX`). If it comes back, ask the card's maker."
    ),
    "xid-143": (
        "XID 143: the GPU could not be started. Mostly caused by the hardware. Drain the host (`windrow host "
        "drain HOST`) and reset the GPU (`sudo nvidia-smi -r -i INDEX`). If it comes back, ask the card's "
        "maker."
    ),
    "xid-144": (
        "XID 144: NVLink connection failed. Mostly caused by the hardware. `nvidia-smi nvlink -e` names the "
        "link. Reset all GPUs of the host together, or reboot it. If it comes back, look at bridges, baseboard "
        "and the GPU at the other end."
    ),
    "xid-145": (
        "XID 145: NVLink connection failed. Mostly caused by the hardware. `nvidia-smi nvlink -e` names the "
        "link. Reset all GPUs of the host together, or reboot it. If it comes back, look at bridges, baseboard "
        "and the GPU at the other end."
    ),
    "xid-146": (
        "XID 146: NVLink connection failed. Mostly caused by the hardware. `nvidia-smi nvlink -e` names the "
        "link. Reset all GPUs of the host together, or reboot it. If it comes back, look at bridges, baseboard "
        "and the GPU at the other end."
    ),
    "xid-147": (
        "XID 147: NVLink connection failed. Mostly caused by the hardware. `nvidia-smi nvlink -e` names the "
        "link. Reset all GPUs of the host together, or reboot it. If it comes back, look at bridges, baseboard "
        "and the GPU at the other end."
    ),
    "xid-148": (
        "XID 148: NVLink connection failed. Mostly caused by the hardware. `nvidia-smi nvlink -e` names the "
        "link. Reset all GPUs of the host together, or reboot it. If it comes back, look at bridges, baseboard "
        "and the GPU at the other end."
    ),
    "xid-149": (
        "XID 149: NVLink connection failed. Mostly caused by the hardware. `nvidia-smi nvlink -e` names the "
        "link. Reset all GPUs of the host together, or reboot it. If it comes back, look at bridges, baseboard "
        "and the GPU at the other end."
    ),
    "xid-150": (
        "XID 150: NVLink connection failed. Mostly caused by the hardware. `nvidia-smi nvlink -e` names the "
        "link. Reset all GPUs of the host together, or reboot it. If it comes back, look at bridges, baseboard "
        "and the GPU at the other end."
    ),
    "xid-151": (
        "XID 151: the keys of confidential computing could not be renewed. Mostly caused by the driver. Restart"
        " the virtual machine."
    ),
    "xid-154": (
        "XID 154: the driver asks for another way to recover the GPU. Mostly caused by the hardware. Do what "
        "the driver's message says."
    ),
    "xid-155": (
        "XID 155: NVLink connection was taken down by software. Mostly caused by the driver. `nvidia-smi nvlink"
        " -e` names the link. Reset all GPUs of the host together, or reboot it. If it comes back, look at "
        "bridges, baseboard and the GPU at the other end."
    ),
    "xid-156": (
        "XID 156: a bad part of the GPU is taken out of use at the next reset. Mostly caused by the hardware. "
        "Drain the host (`windrow host drain HOST`) and reset the GPU (`sudo nvidia-smi -r -i INDEX`). If it "
        "comes back, ask the card's maker."
    ),
    "xid-157": (
        "XID 157: a bad part of the GPU could not be taken out of use. Mostly caused by the hardware. Ask the "
        "card's maker: the GPU works on until then, and it may happen again."
    ),
    "xid-158": (
        "XID 158: a part of the GPU did not answer in time. Mostly caused by the hardware. Drain the host "
        "(`windrow host drain HOST`) and reset the GPU (`sudo nvidia-smi -r -i INDEX`). If it comes back, ask "
        "the card's maker."
    ),
    "xid-160": (
        "XID 160: a bad channel of the GPU's memory is taken out of use. Mostly caused by the hardware. Ask the"
        " card's maker: the GPU works on until then, and it may happen again."
    ),
    "xid-161": (
        "XID 161: a bad channel of the GPU's memory could not be taken out of use. Mostly caused by the "
        "hardware. Ask the card's maker: the GPU works on until then, and it may happen again."
    ),
    "xid-162": (
        "XID 162: the power smoothing of the card works again. Mostly caused by the hardware. Nothing at once: "
        "the GPU works, and its power changes faster. Ask the card's maker if that matters."
    ),
    "xid-163": (
        "XID 163: the power smoothing of the card is off. Mostly caused by the hardware. Nothing at once: the "
        "GPU works, and its power changes faster. Ask the card's maker if that matters."
    ),
    "xid-164": (
        "XID 164: the power smoothing of the card is nearly worn out. Mostly caused by the hardware. Nothing at"
        " once: the GPU works, and its power changes faster. Ask the card's maker if that matters."
    ),
    "xid-165": (
        "XID 165: the power smoothing of the card is worn out. Mostly caused by the hardware. Nothing at once: "
        "the GPU works, and its power changes faster. Ask the card's maker if that matters."
    ),
    "xid-167": (
        "XID 167: the PCIe connection did not answer in time. Mostly caused by the hardware. Reboot the host. "
        "If it happens again, reseat the card and its power cables, or replace the card."
    ),
    "xid-168": (
        "XID 168: errors in the part of memory that the GPU needs itself. Mostly caused by the hardware. Turn "
        "ECC on, then reboot the host."
    ),
    "xid-169": (
        "XID 169: a controller inside the GPU has halted. Mostly caused by the hardware. Drain the host "
        "(`windrow host drain HOST`) and reset the GPU (`sudo nvidia-smi -r -i INDEX`). If it comes back, ask "
        "the card's maker."
    ),
    "xid-171": (
        "XID 171: memory error that could not be corrected, in the card's memory chips. Mostly caused by the "
        "hardware. Drain the host (`windrow host drain HOST`) and reset the GPU (`sudo nvidia-smi -r -i "
        "INDEX`). If it comes back, ask the card's maker."
    ),
    "xid-172": (
        "XID 172: memory error that could not be corrected, inside the GPU chip. Mostly caused by the hardware."
        " Drain the host (`windrow host drain HOST`) and reset the GPU (`sudo nvidia-smi -r -i INDEX`). If it "
        "comes back, ask the card's maker."
    ),
}
