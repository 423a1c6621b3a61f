import sys

from dml_robot.launcher import main

sys.exit(main(sys.argv[1:]))
