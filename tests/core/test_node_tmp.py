from .world import X
def test_x(): assert X
