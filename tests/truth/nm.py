"""nm for jeprof: asked once for each file, nm_once.sh tells why."""
import os
import shutil


def begin(work):
    """Nothing is kept from before: files may have changed. Says where, for the processes of this test."""
    folder = os.path.abspath(work) + "/nm"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    os.environ["NM_KEPT"] = folder


def tools(**others):
    """For JEPROF_TOOLS, which has all or none."""
    paths = {tool: shutil.which(tool) for tool in ("c++filt", "objdump", "addr2line")}
    paths.update(others, nm=os.path.dirname(os.path.abspath(__file__)) + "/nm_once.sh")
    return ",".join("%s:%s" % item for item in paths.items())
